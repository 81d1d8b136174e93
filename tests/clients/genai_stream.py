"""Asks for one streamed answer as a user's program would, and says on stdout what it got.

usage: genai_stream.py      (address and key from GOOGLE_GEMINI_BASE_URL and GEMINI_API_KEY)
"""

import json

from google import genai


def main():
    told = {"text": "", "items": 0, "raised": None, "status": None}
    try:
        client = genai.Client()
        for chunk in client.models.generate_content_stream(model="m", contents="say the word"):
            told["items"] += 1
            told["text"] += chunk.text or ""
    except Exception as error:
        told["raised"] = type(error).__name__
        told["status"] = getattr(error, "code", None)
    print(json.dumps(told))


main()
