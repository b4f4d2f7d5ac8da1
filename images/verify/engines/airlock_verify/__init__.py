"""The guest of the image "verify": fetches one request, asks an engine, delivers its verdict.

The engines parse hostile text, so this process is not trusted by the host: whatever it
delivers is only the verdict on its one request.
"""
