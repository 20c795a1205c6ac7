"""Pictures are taken out of requests and can be put back, byte by byte."""

import json
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout import pictures
from rollout.types import Image

PNG = Image(data=b"\x89PNG one")
JPEG = Image(data=b"\xff\xd8 two", media_type="image/jpeg")


def source(image):
    data = b64encode(image.data).decode()
    return {"type": "base64", "media_type": image.media_type, "data": data}


def chat(*images):
    parts = [
        {"type": "image_url", "image_url": {"url": pictures.data_url(image)}} for image in images
    ]
    return {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}, *parts]}]}


BODIES = {
    "chat": chat(PNG, JPEG, PNG),
    "responses": {
        "input": [
            {
                "type": "function_call_output",
                "output": [
                    {"type": "input_image", "image_url": pictures.data_url(image)}
                    for image in (PNG, JPEG)
                ],
            }
        ]
    },
    "messages": {
        "messages": [
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "content": [
                            {"type": "text", "text": 'a {"type": "base64"} in words'},
                            *({"type": "image", "source": source(image)} for image in (PNG, JPEG)),
                        ],
                    }
                ],
            }
        ]
    },
}


@pytest.mark.parametrize("dialect", BODIES)
@pytest.mark.parametrize("indent", [None, 1])
def test_each_picture_is_taken_out_once_and_put_back(dialect, indent):
    body = json.dumps(BODIES[dialect], indent=indent).encode()
    shortened, found = pictures.taken_out(body)
    assert found == {PNG.digest: PNG, JPEG.digest: JPEG}
    assert b64encode(PNG.data) not in shortened
    assert f"sha256:{PNG.digest}".encode() in shortened
    assert json.loads(shortened).keys() == BODIES[dialect].keys()
    assert pictures.put_back(shortened, found) == body
    assert pictures.taken_out(shortened) == (shortened, {})


def test_what_is_no_picture_stays():
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}
    said = [
        {"role": "user", "content": "data:image/png;base64,AAAA is how it looks"},
        {"role": "user", "content": [{"type": "document", "source": pdf}]},
        {"role": "user", "content": [{"image_url": {"url": "data:image/png;base64,AAA=A"}}]},
        {"role": "user", "content": [{"image_url": {"url": "data:image/png;base64,AB=="}}]},
        {"role": "user", "content": [{"image_url": {"url": "https://example.com/a.png"}}]},
        {"role": "assistant", "content": '{"url": "data:image/png;base64,AAAA"}'},
    ]
    body = json.dumps(said).encode()
    assert pictures.taken_out(body) == (body, {})


def test_a_request_without_pictures_is_the_same_object():
    body = b'{"messages":[{"role":"user","content":"hi"}]}'
    assert pictures.taken_out(body)[0] is body
    assert pictures.put_back(body, {PNG.digest: PNG}) is body


@pytest.mark.parametrize("dialect", BODIES)
def test_words_that_look_like_a_reference_stay(dialect):
    word = f"sha256:{PNG.digest}"
    said = [{"role": "user", "content": text} for text in (word, f"a,{word}", f"a {word} b")]
    source = {"type": "base64", "media_type": "application/pdf", "data": word}
    body = json.dumps([*said, {"source": source}, BODIES[dialect], {"data": word}]).encode()
    shortened, found = pictures.taken_out(body)
    assert PNG.digest in found
    assert pictures.put_back(shortened, found) == body


def test_a_reference_to_nothing_stays():
    shortened, _ = pictures.taken_out(json.dumps(chat(PNG)).encode())
    assert pictures.put_back(shortened, {}) == shortened


@given(st.lists(st.binary(min_size=1, max_size=200), max_size=4), st.text(max_size=50))
def test_any_pictures_come_back(data, text):
    images = [Image(data=item) for item in data]
    sources = [{"type": "image", "source": source(image)} for image in images]
    body = json.dumps([chat(*images), {"content": [{"text": text}, *sources]}]).encode()
    shortened, found = pictures.taken_out(body)
    assert set(found.values()) == set(images)
    assert pictures.put_back(shortened, found) == body


def test_urls_are_known_by_the_pictures_that_they_hold_or_refer_to():
    url, images = pictures.data_url(PNG), {PNG.digest: PNG}
    reference = f"data:image/png;base64,sha256:{PNG.digest}"
    assert pictures.digest_of(url) == pictures.digest_of(reference) == PNG.digest
    assert len(pictures.digest_of("https://example.com/a.png")) == 64
    assert pictures.inlined(reference, images) == url
    assert pictures.inlined(reference, {}) == reference
    assert pictures.inlined("https://example.com/a.png", images) == "https://example.com/a.png"
    assert (pictures.recorded(reference), pictures.recorded(url)) == (PNG.digest, None)


def test_an_estimate_does_not_count_base64_as_text():
    body = json.dumps(chat(PNG, JPEG)).encode()
    size, count = pictures.without(body)
    assert count == 2
    assert size == len(json.dumps(chat(PNG, JPEG))) - sum(
        len(pictures.data_url(image)) + 2 for image in (PNG, JPEG)
    )
