"""Asks for one streamed answer as a user's program would, and says on stdout what it got.

usage: ollama_stream.py      (address from OLLAMA_HOST)
"""

import json

import ollama


def main():
    told = {"text": "", "items": 0, "raised": None, "status": None}
    try:
        asked = [{"role": "user", "content": "say the word"}]
        for part in ollama.chat(model="m", messages=asked, stream=True):
            told["items"] += 1
            told["text"] += part.message.content or ""
    except Exception as error:
        told["raised"] = type(error).__name__
        told["status"] = getattr(error, "status_code", None)
    print(json.dumps(told))


main()
