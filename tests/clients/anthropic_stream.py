"""Asks for one answer as a user's program would, streamed unless it is wanted whole, and says on stdout what it got.

usage: anthropic_stream.py messages [whole]      (address and key from ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY)
"""

import json
import sys

import anthropic

WHOLE = "whole" in sys.argv


def messages(client):
    asked = [{"role": "user", "content": "say the word"}]
    if WHOLE:
        message = client.messages.create(model="m", max_tokens=100, messages=asked)
        yield "".join(block.text for block in message.content)
        return
    for event in client.messages.create(model="m", max_tokens=100, messages=asked, stream=True):
        text = event.type == "content_block_delta" and event.delta.type == "text_delta"
        yield event.delta.text if text else ""


def main():
    told = {"text": "", "items": 0, "raised": None, "status": None}
    try:
        for text in messages(anthropic.Anthropic()):
            told["items"] += 1
            told["text"] += text
    except Exception as error:
        told["raised"] = type(error).__name__
        told["status"] = getattr(error, "status_code", None)
    print(json.dumps(told))


main()
