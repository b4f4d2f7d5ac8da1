# tries: to overflow the host's stack with a result of many levels
# stopped by: the guest and the host refuse what is nested too deeply
# want: ResultNotSerializable or OutputLimit or RecursionError or SandboxError

result = []
for _ in range(200_000):
    result = [result]
