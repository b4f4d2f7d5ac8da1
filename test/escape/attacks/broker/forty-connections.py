# tries: to have the host serve more connections than it should
# stopped by: at most 16 connections of a run are served at a time; the others wait
# want: nothing

hoard = [broker() for _ in range(40)]
served = 0
for s in hoard:
    s.settimeout(0.1)
    try:
        ask(s, frame("catalog/search", {}))
        served += 1
    except TimeoutError as error:
        print("refused:", error)
if served > 16:
    result.append(f"{served} connections at once")
