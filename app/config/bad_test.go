package config

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// Every mistake is reported in one sentence with its position and an optional hint. The key
// of a case describes the mistake.
func TestMistakes(t *testing.T) {
	for name, c := range map[string]struct{ text, want, hint string }{
		"a typo at the top": {"sandbx: {}", `1:1: unknown key "sandbx"`, `did you mean "sandbox"?`},
		"a typo in a section": {"sandbox:\n  memroy: 1GiB", `2:3: unknown key "memroy" in sandbox`,
			`did you mean "memory"?`},
		"another spelling of a key": {"sandbox: {open_files: 100}", `1:11: unknown key "open_files" in sandbox`,
			`did you mean "openFiles"?`},
		"a typo in a server": {"mcpServers:\n  a:\n    comand: x",
			`3:5: unknown key "comand" in mcpServers.a`, `did you mean "command"?`},
		"a typo in a tool": {"mcpServers: {a: {command: x}}\nservers: {a: {tools: {t: {rsk: read}}}}",
			`2:27: unknown key "rsk" in servers.a.tools.t`, `did you mean "risk"?`},
		"a key like no other": {"audit: {elephant: 1}", `1:9: unknown key "elephant" in audit`,
			"the keys known here are path, keep, clearArguments, keepArguments, argumentsSize, witness, witnessKey, " +
				"witnessDelay, durability"},
		"a key twice": {"audit: {path: a}\nsandbox: {}\naudit: {path: b}",
			`3:1: the key "audit" appears twice in the file, first on line 1`, "keep one of the two"},
		"a key twice in a server": {"mcpServers: {a: {command: x, command: y}}",
			`1:30: the key "command" appears twice in mcpServers.a, first on line 1`, "keep one of the two"},
		"a merge key":        {"a: &a {pool: 1}\nsandbox: {<<: *a}", `1:1: unknown key "a"`, "*"},
		"a mapping as a key": {"{[1]: 2}", "1:2: a key in the file is not a plain text", ""},
		"a list at the top":  {"- a", "1:1: the file must be a mapping of keys to values, not a list", ""},
		"a text at the top": {"airlock",
			"1:1: the file must be a mapping of keys to values, not a single value", ""},
		"a list for a mapping": {"sandbox: [1]",
			"1:10: sandbox must be a mapping of keys to values, not a list", ""},
		"a text for a list": {"mcpServers: {a: {command: x, args: -y}}",
			"1:36: mcpServers.a.args must be a list, not a single value", ""},
		"a list for a text": {"mcpServers: {a: {command: [npx, -y]}}",
			"1:27: mcpServers.a.command must be a single value, not a list", ""},
		"a mapping in a list": {"policies: [{a: b}]",
			"1:12: policies[0] must be a single value, not a mapping", ""},
		"no value": {"sandbox: {timeout: }", "1:20: sandbox.timeout has no value",
			`write "" for an empty text, or leave the key out`},
		"an empty command": {`mcpServers: {a: {command: ""}}`,
			`1:27: mcpServers.a.command must be a text that is not empty, not ""`, ""},
		"a size that is none": {"sandbox: {memory: lots}",
			`1:19: sandbox.memory must be a size such as 512MiB, not "lots"`, ""},
		"a negative size": {"limits: {stdout: -1}",
			`1:18: limits.stdout must be a size such as 64KiB, not "-1"`, ""},
		"a size beyond 64 bits": {"limits: {output: 9223372036854775807TiB}",
			`1:18: limits.output must be a size such as 16MiB, not "9223372036854775807TiB"`, ""},
		"a size out of range": {"sandbox: {memory: 1MiB}",
			`1:19: sandbox.memory must be between 64MiB and 1TiB, not "1MiB"`, ""},
		"a time without a unit": {"sandbox: {timeout: 30}",
			`1:20: sandbox.timeout must be a time such as 30s, not "30"`, ""},
		"a time out of range": {"sandbox: {timeout: 1ns}",
			`1:20: sandbox.timeout must be between 100ms and 24h, not "1ns"`, ""},
		"a number that is none": {"sandbox: {pids: many}",
			`1:17: sandbox.pids must be a whole number such as 128, not "many"`, ""},
		"a fraction for a whole number": {"sandbox: {pool: 1.5}",
			`1:17: sandbox.pool must be a whole number such as 2, not "1.5"`, ""},
		"a negative number": {"sandbox: {pool: -1}",
			`1:17: sandbox.pool must be between 0 and 1024, not "-1"`, ""},
		"not a number of cores": {"sandbox: {cpus: .nan}",
			`1:17: sandbox.cpus must be a number such as 1, not ".nan"`, ""},
		"NaN cores": {"sandbox: {cpus: NaN}",
			`1:17: sandbox.cpus must be between 0.1 and 256, not "NaN"`, ""},
		"an unknown driver": {"sandbox: {driver: docker}",
			`1:19: sandbox.driver must be one of runsc, containerd, not "docker"`, ""},
		"a network of the code's own": {"sandbox: {network: egress}",
			`1:20: sandbox.network can only be none or a list of hosts, not "egress": code in a sandbox reaches ` +
				`named ` +
				"hosts only", "list hosts, such as [api.github.com:443], and permit them by policy (docs/egress.md)"},
		"an address in place of a host": {"sandbox: {network: ['10.0.0.1:443']}",
			`1:21: sandbox.network[0]: "10.0.0.1" is not a host's name, such as api.github.com`,
			"write NAME:PORT, such as api.github.com:443"},
		"a budget below zero": {"agents: {sessionBudget: {dayRequests: -1}}",
			`1:39: agents.sessionBudget.dayRequests must be between 0 and 1099511627776, not "-1"`, ""},
		"another driver's section": {"sandbox: {containerd: {address: /x}}",
			"1:10: sandbox.containerd is set, but sandbox.driver is runsc",
			"write `driver: containerd` beside it, or remove it"},
		"an unknown profile": {"limits: {profile: huge}",
			`1:19: limits.profile must be one of default, wide, not "huge"`, ""},
		"an unknown risk": {"mcpServers: {a: {command: x}}\nservers: {a: {tools: {t: {risk: none}}}}",
			`2:33: servers.a.tools.t.risk must be one of read, write, destructive, not "none"`, ""},
		"a typo in a limit": {"limits: {tolRate: 1/s}", `1:10: unknown key "tolRate" in limits`,
			`did you mean "toolRate"?`},
		"a rate that is none": {"limits: {rate: 10}",
			`1:16: limits.rate must be a number of calls in a time, such as 10/s or 1000/5s, not "10"`, ""},
		"a rate of fractions": {"limits: {rate: 0.5/s}",
			`1:16: limits.rate must be a number of calls in a time, such as 10/s or 1000/5s, not "0.5/s"`, ""},
		"a rate in no time": {"limits: {toolRate: 10/0s}",
			`1:20: limits.toolRate must be between 1 and 1000000 calls in 1ms to 24h, not "10/0s"`, ""},
		"a rate that allows nothing": {"mcpServers: {a: {command: x}}\nservers: {a: {rate: 0/s}}",
			`2:21: servers.a.rate must be between 1 and 1000000 calls in 1ms to 24h, not "0/s"`, ""},
		"a tool's rate without a number": {"mcpServers: {a: {command: x}}\nservers: {a: {tools: {t: {rate: often}}}}",
			`2:33: servers.a.tools.t.rate must be a number of calls in a time, such as 10/s or 1000/5s, not "often"`,
			""},
		"a result that no frame holds": {"limits: {resultBytes: 16MiB}",
			`1:23: limits.resultBytes must be between 1KiB and 15MiB, not "16MiB"`, ""},
		"no room for one result": {"limits: {unreadBytes: 1MiB}",
			"1:1: limits.resultBytes (12MiB) is larger than limits.unreadBytes (1MiB)",
			"raise limits.unreadBytes or lower limits.resultBytes"},
		"a typo in redaction": {"redaction: {placeholder: true}",
			`1:13: unknown key "placeholder" in redaction`, `did you mean "placeholders"?`},
		"yes for true": {"mcpServers: {a: {command: x}}\nservers: {a: {trustAnnotations: yes}}",
			`2:33: servers.a.trustAnnotations must be true or false, not "yes"`, ""},
		"a pool larger than its bound": {"sandbox: {pool: 9}",
			"1:1: sandbox.pool (9) is larger than sandbox.maxSandboxes (8)",
			"raise sandbox.maxSandboxes or lower sandbox.pool"},
		"neither command nor url": {"mcpServers: {a: {}}", "1:14: mcpServers.a has neither command nor url",
			"give it a command to start, or the url of a running server"},
		"both command and url": {"mcpServers: {a: {command: x, url: 'http://x'}}",
			"1:14: mcpServers.a has both command and url", "keep one of the two"},
		"an address of another kind": {"mcpServers: {a: {url: 'file:///etc/passwd'}}",
			"1:14: mcpServers.a.url is not an http or https address", "*"},
		"a type against the command": {"mcpServers: {a: {type: http, command: x}}",
			"1:14: mcpServers.a has a command, but its type is http", "remove type, or write stdio"},
		"a type against the url": {"mcpServers: {a: {type: stdio, url: 'http://x'}}",
			"1:14: mcpServers.a has a url, but its type is stdio", "remove type, or write http"},
		"an unknown type": {"mcpServers: {a: {type: ws, url: 'http://x'}}",
			`1:24: mcpServers.a.type must be one of stdio, http, sse, not "ws"`, ""},
		"two servers, one module": {"mcpServers:\n  my-crm: {command: x}\n  my.crm: {command: y}",
			`3:3: the servers "my-crm" and "my.crm" both become the module "my_crm" in code`, "rename one of them"},
		"a server without a name": {`mcpServers: {"": {command: x}}`,
			"1:14: a server in mcpServers has an empty name", "give the server a name"},
		"a server name with a newline": {`mcpServers: {"a\nb": {command: x}}`,
			`1:14: the server name "a\nb" contains a control character`, ""},
		"settings for a missing server": {"mcpServers: {files: {command: x}}\nservers: {file: {deny: [x]}}",
			"2:11: servers.file decides about a server that mcpServers does not have", `did you mean "files"?`},
		"a variable that is not set": {"mcpServers: {a: {command: x, env: {T: '${TOKEN}'}}}",
			"1:39: mcpServers.a.env.T needs the environment variable TOKEN, which is not set",
			"set TOKEN, or give a default: ${TOKEN:-value}"},
		"a variable in another spelling": {"mcpServers: {a: {command: '${env:TOKEN}'}}",
			"1:27: mcpServers.a.command needs the environment variable TOKEN, which is not set", "*"},
		"an input of VS Code": {"mcpServers: {a: {command: '${input:key}'}}",
			`1:27: mcpServers.a.command asks for the input "key", which only VS Code can ask for`,
			"put the value into an environment variable and write ${NAME}"},
		"a variable that is not closed": {"mcpServers: {a: {command: '${TOKEN'}}",
			"1:27: mcpServers.a.command has a ${ without its }", ""},
		"not the name of a variable": {"mcpServers: {a: {command: '${a b}'}}",
			"1:27: mcpServers.a.command has ${a b}, which is not the name of a variable", "write $${ for a literal ${"},
		"a NUL byte": {`mcpServers: {a: {command: "a\0b"}}`,
			"1:27: mcpServers.a.command contains a NUL byte", ""},
		"not UTF-8": {"a: 1\nb: \xff\n", "2: the file is not UTF-8", "save it as UTF-8"},
		"a bracket that is not closed": {"sandbox: {pool: 2\naudit: {}",
			"2:6: not valid YAML: did not find expected ',' or '}' (while parsing a flow mapping that starts on line " +
				"1)", "*"},
		"a wrong indentation": {"sandbox:\n  pool: 2\n memory: 1GiB", "*",
			"check the indentation, and quote texts that contain : or #"},
		"a tab": {"sandbox:\n\tpool: 2",
			"2:1: not valid YAML: found character that cannot start any token (while scanning for the next token " +
				"that starts on line 2)", "indent with spaces: YAML does not allow tabs"},
		"an alias of nothing": {"policies: *p", "1:11: not valid YAML: unknown anchor 'p' referenced", "*"},
		"two documents": {"audit: {}\n---\naudit: {}", "2:1: the file holds more than one document",
			"keep one document and remove the line ---"},
		"a profile without servers": {"profiles: {a: {}}", "1:12: profiles.a shows no servers",
			`name servers with their tools, for example files: [read_*], or servers: ["*"] for all`},
		"a profile's server not there": {"mcpServers: {files: {command: x}}\nprofiles: {a: {servers: {file: ['*']}}}",
			`2:26: profiles.a.servers.file names the server "file", which mcpServers does not have`,
			`did you mean "files"?`},
		"one in a list": {"mcpServers: {files: {command: x}}\nprofiles: {a: {servers: [mail]}}",
			`2:26: profiles.a.servers[0] names the server "mail", which mcpServers does not have`,
			"add it to mcpServers, or remove it here"},
		"a profile's server, no tools": {"mcpServers: {files: {command: x}}\nprofiles: {a: {servers: {files: []}}}",
			"2:26: profiles.a.servers.files names no tools", `write ["*"] for all of them, or leave the server out`},
		"an empty name of a tool": {"mcpServers: {files: {command: x}}\nprofiles: {a: {servers: {files: ['']}}}",
			"2:34: profiles.a.servers.files[0] is an empty name", `write "*" for all`},
		"a proxy by its name": {"serve: {trustedProxies: [proxy.example]}",
			`1:26: serve.trustedProxies[0] is neither an address nor a network: "proxy.example"`,
			"write it as 10.0.0.7, 10.0.0.0/8 or 2001:db8::/32"},
		"every address as a proxy": {"serve: {trustedProxies: [10.0.0.1, '::/0']}",
			`1:36: serve.trustedProxies[1] is every address there is: each client could say that it is another`,
			"name the addresses of the proxies alone"},
		"a port that is none": {"serve: {listen: '127.0.0.1:99999'}",
			`1:17: serve.listen must be an address and a port, such as 127.0.0.1:7823, not "127.0.0.1:99999"`, ""},
		"the name of a port": {"serve: {listen: '127.0.0.1:http'}",
			`1:17: serve.listen must be an address and a port, such as 127.0.0.1:7823, not "127.0.0.1:http"`, ""},
		"a witness of no kind": {"audit: {witness: 'syslog://10.0.0.1:514'}",
			`1:18: audit: the audit witness "syslog://10.0.0.1:514": it is not one of an absolute path, ` +
				`file:///path, syslog+unix:///path, syslog+udp://host:port, syslog+tcp://host:port and ` +
				`https://host/prefix`, "docs/audit.md lists which witnesses there are"},
		"a witness without its key": {"audit: {witness: 'https://witness.example'}", "*",
			"docs/audit.md lists which witnesses there are"},
		"a key without its witness": {"audit: {witnessKey: x}",
			"1:21: audit.witnessKey is the key of a witness that is not named",
			"name the witness as audit.witness, too"},
		"an identity without its file": {"secrets: {ageIdentity: x}",
			"1:24: secrets.ageIdentity is given, but no encrypted file that it decrypts",
			"name the encrypted file as secrets.ageFile, too"},
		"a database in the file itself": {"cluster: {database: {from: 'postgres://u@h/d'}, key: {from: env:K}}",
			"1:21: cluster.database is read from a variable of the environment or from a file",
			"write {from: env:NAME} or {from: file:PATH}"},
		"a cluster without a key": {"cluster: {database: {from: env:D}}",
			"1:10: cluster lacks the key key", "docs/cluster.md shows both"},
		"a node with a space": {"cluster: {node: 'a b'}",
			`1:17: cluster.node: "a b" is not the name of a node: use 1 to 63 letters, digits, dots, - and _`,
			"write a name such as node-1"},
		"an address of nodes without TLS": {"cluster: {advertise: 'http://10.0.0.7:7824'}",
			`1:22: cluster.advertise is not a URL with https, a host and a port: "http://10.0.0.7:7824"`,
			"write it as https://10.0.0.7:7824"},
		"an address of nodes without a port": {"cluster: {advertise: 'https://10.0.0.7'}",
			`1:22: cluster.advertise is not a URL with https, a host and a port: "https://10.0.0.7"`,
			"write it as https://10.0.0.7:7824"},
		"an object store of another kind": {"cluster: {objects: 'ftp://host'}",
			`1:20: cluster.objects: the object store "ftp://host": it is not one of file:///path and ` +
				`s3://bucket/prefix?endpoint=https://host:port&region=name`,
			"write file:///shared/path or s3://bucket/prefix"},
		"a password in the address of an object store": {"cluster: {objects: 's3://a:secret@b'}",
			`1:20: cluster.objects: the object store "s3://a:xxxxx@b": it is not one of file:///path and ` +
				`s3://bucket/prefix?endpoint=https://host:port&region=name`,
			"write file:///shared/path or s3://bucket/prefix"},
		"replicated records without a cluster": {"audit: {durability: replicated}",
			"1:8: audit.durability is replicated, and there is no cluster with an object store",
			"name both: cluster.database and cluster.objects"},
		"every address for nodes": {"cluster: {advertise: 'https://0.0.0.0:7824'}",
			`1:22: cluster.advertise is every address of this machine: "https://0.0.0.0:7824"`,
			"name the address at which other nodes reach this one"},
		"an address of no Redis": {"agents: {redis: 'hunter2@127.0.0.1'}",
			"1:17: agents.redis is not the address of a Redis server: redis://, rediss:// or unix://",
			"write it as redis://127.0.0.1:6379/0"},
		"a share of nothing": {"serve: {callerRequests: 0}",
			"1:25: serve.callerRequests must be between 16 and 4000, not \"0\"", ""},
		"two default profiles": {"mcpServers: {f: {command: x}}\nprofiles: {a: {default: true, servers: " +
			"[f]}, b: {default: true, servers: [f]}}", `2:46: the profiles "a" and "b" are both the default`,
			"keep one"},
		"a profile's name": {"profiles: {'a b': {}}", `1:12: "a b" is not a name for a profile`,
			"use letters, digits, - and _"},
		"a typo in a profile": {"profiles: {a: {server: [f]}}", `1:16: unknown key "server" in profiles.a`,
			`did you mean "servers"?`},
		"VS Code's key beside our own": {"servers: {a: {command: x}}\nsandbox: {pool: 1}",
			"2:10: Airlock's key sandbox stands beside VS Code's key servers", "rename servers to mcpServers"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, c.text, noEnv)
			var ce *Error
			if !errors.As(err, &ce) {
				t.Fatalf("got %v, want an *Error", err)
			}
			got := strings.TrimPrefix(ce.Error(), ce.File+":")
			if c.want != "*" && got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if filepath.Base(ce.File) != "airlock.yaml" || ce.Line == 0 {
				t.Errorf("got no place in %q", ce.Error())
			}
			if c.hint != "*" && ce.Hint() != c.hint {
				t.Errorf("got hint %q, want %q", ce.Hint(), c.hint)
			}
		})
	}
}

func TestAliasesCannotMultiplyWithoutEnd(t *testing.T) {
	text := "policies: &p [" + strings.Repeat("x,", 1000) + "]\nmcpServers:\n"
	for i := range 200 {
		text += "  s" + strings.Repeat("x", i) + ": {command: x, args: *p}\n"
	}
	_, err := load(t, text, noEnv)
	if err == nil || !strings.Contains(err.Error(), "the file has more than 100000 values") {
		t.Errorf("got %v, want a refusal of so many values", err)
	}
}
