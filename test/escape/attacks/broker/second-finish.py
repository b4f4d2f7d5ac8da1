# tries: to deliver a second result after the first
# stopped by: the first one counts
# want: nothing

s = broker()
print("harmless: the first one counts", flush=True)
ask(s, frame("run/finish", {"ok": True, "has_result": True, "data": []}))
ask(s, frame("run/finish", {"ok": True, "has_result": True, "data": ["the second one counted"]}, id=2))
result = ["the third one counted"]
