"""Asks for one answer as a user's program would, streamed unless it is wanted whole, and says on stdout what it got.

usage: openai_stream.py chat|responses [whole]      (address and key from OPENAI_BASE_URL and OPENAI_API_KEY)
"""

import json
import sys

import openai

WHOLE = "whole" in sys.argv


def chat(client):
    asked = [{"role": "user", "content": "say the word"}]
    if WHOLE:
        yield client.chat.completions.create(model="m", messages=asked).choices[0].message.content
        return
    for chunk in client.chat.completions.create(model="m", messages=asked, stream=True):
        choices = chunk.choices or []
        yield "".join(choice.delta.content or "" for choice in choices)


def responses(client):
    if WHOLE:
        yield client.responses.create(model="m", input="say the word").output_text
        return
    for event in client.responses.create(model="m", input="say the word", stream=True):
        yield event.delta if event.type == "response.output_text.delta" else ""


def main():
    told = {"text": "", "items": 0, "raised": None, "status": None}
    try:
        for text in {"chat": chat, "responses": responses}[sys.argv[1]](openai.OpenAI()):
            told["items"] += 1
            told["text"] += text
    except Exception as error:
        told["raised"] = type(error).__name__
        told["status"] = getattr(error, "status_code", None)
    print(json.dumps(told))


main()
