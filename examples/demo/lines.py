# How many lines of Go does the broker have? All of its files are read, two numbers come back.
import asyncio

from servers import files

root = (await files.list_allowed_directories({})).data["content"].splitlines()[1]
found = (await files.search_files({"path": f"{root}/broker", "pattern": "**/*.go"})).data["content"]
texts = await asyncio.gather(*(files.read_text_file({"path": p}) for p in found.splitlines()))
lines = sum(t.data["content"].count("\n") for t in texts)

result = {"files": len(texts), "lines": lines}    # only this reaches the model
