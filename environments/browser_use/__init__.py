"""Tasks on the web: a Chromium over CDP, pages to act on by coordinates, screenshots to look at."""
