# tries: to have the later of two results count, sent in one go
# stopped by: results are taken in the order in which they arrive, and the first one counts
# want: nothing

print("harmless: the first one counts", flush=True)
first = frame("run/finish", {"ok": True, "has_result": True, "data": []})
others = [
    frame("run/finish", {"ok": True, "has_result": True, "data": [f"result {n} counted"]}, id=n) for n in range(2, 64)]
broker().sendall(first + b"".join(others))
time.sleep(30)
