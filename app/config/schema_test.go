package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/golden"
	"github.com/airlock-mcp/airlock/internal/schema"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

type object = map[string]any

// schemaOf is the JSON Schema (draft 2020-12) of the configuration file. It is made from the fields of the decoder.
// The table below has the keys that the decoder reads with a function. The schema accepts everything that the decoder
// accepts, and refuses unknown keys and wrong types. TestSchemaAgreesWithTheDecoder compares both.
func schemaOf(page string) object {
	m := schemaMaker{page}
	d, c := &decoder{}, Default()
	text, texts := ref("text"), list(ref("text"))
	s := Server{StartTimeout: defaultStartTimeout, CallTimeout: defaultCallTimeout}
	var disabled bool
	host := d.hostServer(&disabled)
	fixed := map[string]object{
		"policies": texts, "$schema": {},
		"sandbox.network": m.network(),
		"audit.path":      text, "secrets.ageFile": text, "secrets.ageIdentity": text,
		"sandbox.containerd.address": text, "sandbox.containerd.shim": text,
		"redaction.personalData":  m.personal(),
		"registry.allow":          texts,
		"registry.token":          text,
		"search.embeddings.table": text, "search.embeddings.key": text,
		"kernel.policies": texts, "agents.redis": text,
		"cluster.database": members(object{"from": text}), "cluster.key": members(object{"from": text}),
		"cluster.node": text, "cluster.advertise": text, "cluster.objects": text,
		"agents.prices":          entries(ref("dollars")),
		"agents.principalBudget": m.budget(), "agents.sessionBudget": m.budget(),
		"serve.publicURL": text, "approvals.webhooks.*.secret": text,
		"serve.hosts": texts, "serve.origins": texts, "serve.trustedProxies": texts,
		"serve.certificate": text, "serve.key": text,
		"images.lock": text, "images.python.packages": texts, "images.node.packages": texts,
		"auth.issuer": text, "auth.audience": text, "auth.jwks": text, "auth.types": texts,
		"auth.claims": texts, "auth.roles.*.groups": texts, "auth.roles.*.principals": texts,
		"auth.signIn.clientSecret": text, "auth.signIn.scopes": texts,
		"mcpServers.*.type": anyOf(object{"enum": slices.Sorted(maps.Keys(transports()))}, ref("variable")),
		"mcpServers.*.args": texts, "mcpServers.*.cwd": text,
		"mcpServers.*.env": entries(text), "mcpServers.*.headers": entries(text),
		"mcpServers.*.enabled": m.scalar(flag{new(bool)}),
		"servers.*.allow":      texts, "servers.*.deny": texts, "servers.*.secrets": texts, "servers.*.public": texts,
		"servers.*.personalData": m.personal(), "servers.*.sandbox": m.containment(),
		"servers.*.apps.permissions": list(object{"anyOf": []any{object{"enum": catalog.AppPermissions()},
			ref("variable")}}),
		"servers.*.apps.connectDomains": texts, "servers.*.apps.resourceDomains": texts,
		"servers.*.apps.frameDomains": texts, "servers.*.apps.baseUriDomains": texts,
		"servers.*.oauth.scopes": texts, "servers.*.oauth.clientSecret": text, "servers.*.oauth.clientKey": text,
		"servers.*.oauth.assertionFile": text, "servers.*.oauth.provider.clientSecret": text,
		"servers.*.oauth.provider.clientKey": text,
		"profiles.*.servers":                 anyOf(texts, entries(anyOf(texts, text))),
		"profiles.*.network":                 m.network(),
	}
	for _, at := range []string{"auth.scopes.*", "auth.signIn.groups.*", "auth.signIn.everyone"} {
		fixed[at+".rights"] = list(object{"anyOf": []any{object{"enum": AuthRights}, ref("variable")}})
	}
	for _, ignoredKey := range host[2:] {
		fixed["mcpServers.*."+ignoredKey.key] = object{}
	}
	sections := map[string][]field{
		"sandbox": d.sandboxFields(&c.Sandbox), "sandbox.containerd": d.containerdFields(&c.Sandbox.Containerd),
		"limits": d.limitFields(&c.Limits), "audit": d.auditFields(&c.Audit), "secrets": d.secretsFields(&c.Secrets),
		"replay": d.replayFields(&c.Replay), "tools": d.toolsFields(c), "agents": d.agentsFields(&c.Agents),
		"cluster": d.clusterFields(&c.Cluster), "registry": d.registryFields(&c.Registry),
		"search": {{key: "embeddings"}}, "search.embeddings": d.embeddingsFields(&c.Embeddings),
		"runs": {{key: "suspendAfter", val: duration{to: &c.Runs.SuspendAfter}},
			{key: "suspendedSize", val: size{to: &c.Runs.SuspendedSize}}}, "verify": d.verifyFields(&c.Verify),
		"images": d.imagesFields(&c.Images), "images.python": d.packagesFields("python", &c.Images.Python),
		"images.node": d.packagesFields("node", &c.Images.Node), "kernel": d.kernelFields(&c.Kernel),
		"models.*": d.modelFields(&Model{Timeout: defaultModelTimeout}), "kernel.actions.*": d.actionFields(&Action{}),
		"approvals":            d.approvalFields(&c.Approvals),
		"approvals.webhooks.*": d.webhookFields(&Webhook{}),
		"approvals.quietHours": d.quietFields(&QuietHours{}),
		"approvals.escalation": d.escalationFields(&Escalation{}),
		"serve":                d.serveFields(&c.Serve), "auth": d.authFields(&c.Auth),
		"auth.scopes.*": d.scopeFields(&Scope{}),
		"auth.roles.*":  d.roleFields(&Role{}), "auth.signIn": d.signInFields(&SignIn{}),
		"auth.signIn.groups.*": d.scopeFields(&Scope{}), "auth.signIn.everyone": d.scopeFields(&Scope{}),
		"redaction": d.redactionFields(c), "attachments": d.attachmentsFields(&c.Attachments),
		"session": d.sessionFields(&c.Session), "face": d.faceFields(&c.Face),
		"mcpServers.*": append(d.serverFields(&s), host...), "servers.*": d.settingFields(&Settings{}),
		"servers.*.oauth": d.oauthFields(&OAuth{}), "servers.*.oauth.provider": d.oauthProviderFields(&OAuthProvider{}),
		"servers.*.apps":    d.appFields(&catalog.AppGrant{}),
		"profiles.*":        d.profileFields(&catalog.Profile{}, new(bool)),
		"servers.*.tools.*": d.toolFields(&Tool{}),
	}
	var section func(path string, fields []field) object
	section = func(path string, fields []field) object {
		properties := object{}
		for _, f := range fields {
			at := join(path, f.key)
			switch {
			case f.val != nil:
				properties[f.key] = m.described(at, m.scalar(f.val))
			case sections[at] != nil:
				properties[f.key] = m.described(at, section(at, sections[at]))
			case sections[at+".*"] != nil:
				properties[f.key] = m.described(at, entries(section(at+".*", sections[at+".*"])))
			case fixed[at] == nil:
				panic("the table of the schema lacks " + at)
			default:
				properties[f.key] = m.described(at, fixed[at])
			}
		}
		return members(properties)
	}
	top := section("", append(d.topFields(c, nil), field{key: "$schema"}))
	top["$schema"], top["$id"] = "https://json-schema.org/draft/2020-12/schema", SchemaAddress
	top["title"] = "The configuration of Airlock"
	top["description"] = "airlock doctor checks more: ranges, references between keys, and paths."
	top["$defs"] = m.kinds()
	return top
}

func ref(kind string) object    { return object{"$ref": "#/$defs/" + kind} }
func anyOf(of ...object) object { return object{"anyOf": of} }
func list(of object) object     { return object{"type": []string{"array", "null"}, "items": of} }
func entries(of object) object {
	return object{"type": []string{"object", "null"}, "additionalProperties": of}
}
func members(of object) object {
	return object{"type": []string{"object", "null"}, "properties": of, "additionalProperties": false}
}

// schemaMaker makes the parts of the schema. It has docs/configuration.md, whose tables describe the keys.
type schemaMaker struct{ page string }

// kinds are the kinds of values. A value can have variables, which are texts in JSON.
func (schemaMaker) kinds() object {
	const number, unit = `([0-9]+(\.[0-9]*)?|\.[0-9]+)`, `(ns|us|µs|μs|ms|s|m|h)`
	either := func(kind object) object { return anyOf(kind, ref("variable")) }
	return object{
		"variable": object{"type": "string", "pattern": `\$\{`, "description": "a text with a variable: ${NAME}"},
		"text":     object{"type": []string{"string", "number", "boolean"}},
		"size": either(anyOf(object{"type": "integer", "minimum": 0},
			object{"type": "string", "pattern": `^\+?[0-9]+ *([KMGT]iB|[kKMGT]?B)?$`,
				"examples": []string{"64KiB", "1GiB"}})),
		"duration": either(anyOf(object{"const": 0},
			object{"type": "string", "pattern": `^([-+]?(0|(` + number + unit + `)+)|[0-9]+d)$`,
				"examples": []string{"30s", "1m30s", "30d"}})),
		"rate": either(object{"type": "string", "pattern": `^[-+]?[0-9]+/([smh]|[-+]?(0|(` + number + unit + `)+))$`,
			"examples": []string{"10/s", "100/m"}}),
		"count": either(anyOf(object{"type": "integer"}, object{"type": "string", "pattern": `^[-+]?[0-9]+$`})),
		"cores": either(anyOf(object{"type": "number"},
			object{"type": "string", "pattern": `^[-+]?[0-9a-fA-FxXpP._+-]+$`})),
		"flag": either(object{"enum": []any{true, false, "true", "false"}}),
		"dollars": either(anyOf(object{"type": "number", "minimum": 0},
			object{"type": "string", "pattern": `^\+?[0-9.]+$`})),
	}
}

// scalar returns the schema of a single value.
func (schemaMaker) scalar(v value) object {
	switch v := v.(type) {
	case size:
		return ref("size")
	case duration:
		return ref("duration")
	case rate:
		return ref("rate")
	case count[int], count[int64], count[uint64]:
		return ref("count")
	case cores:
		return ref("cores")
	case flag:
		return ref("flag")
	case dollars:
		return ref("dollars")
	case word:
		return anyOf(object{"enum": v.choices}, ref("variable"))
	case oauthGrant:
		return anyOf(object{"enum": v.choices}, ref("variable"))
	case free, address, hostPort, hookURL, clock, zone, hidden:
		return ref("text")
	}
	panic(fmt.Sprintf("no schema for %T", v))
}

func (schemaMaker) network() object {
	return anyOf(object{"type": "array", "items": ref("text")}, object{"const": "none"}, ref("variable"))
}

func (m schemaMaker) personal() object {
	choice := m.scalar(personalChoice(new(string)))
	kinds := object{}
	for _, kind := range personalKinds {
		kinds[kind] = choice
	}
	return anyOf(choice, members(kinds))
}

func (m schemaMaker) budget() object {
	amount, requests := m.scalar(dollars{new(budget.Amount)}), m.scalar(count[int64]{})
	return members(object{"dayCost": amount, "requestCost": amount, "hourRequests": requests, "dayRequests": requests})
}

func (m schemaMaker) containment() object {
	text, texts := ref("text"), list(ref("text"))
	mount := anyOf(text, members(object{"path": text, "at": text, "writable": ref("flag")}))
	return anyOf(object{"type": "boolean"}, members(object{"packages": texts, "mounts": list(mount),
		"network": m.network(), "memory": ref("size"), "cpus": ref("cores"),
		"pids": ref("count"), "disk": ref("size")}))
}

// described adds the default and the meaning of a key from its row in the documentation.
func (m schemaMaker) described(path string, of object) object {
	of = maps.Clone(of)
	for line := range strings.Lines(m.page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) < 3 || !strings.Contains(cells[0], "`"+path+"`") {
			continue
		}
		meaning := plainText(strings.Join(cells[2:], " | "))
		if byDefault := plainText(cells[1]); byDefault != "" {
			meaning += " (default: " + byDefault + ")"
		}
		of["description"] = meaning
	}
	return of
}

var markdownLink = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

func plainText(cell string) string {
	return strings.TrimSpace(strings.ReplaceAll(markdownLink.ReplaceAllString(cell, "$1"), "`", ""))
}

func TestSchemaIsPublished(t *testing.T) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(schemaOf(docsPage(t))); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, out.Bytes(), filepath.Join(testenv.RepoRoot(t), "docs", "airlock.schema.json"))
}

func published(t *testing.T) (*schema.Schema, object) {
	t.Helper()
	text := readDocs(t, "airlock.schema.json")
	compiled, err := schema.Compile(json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	var decoded object
	if err := json.Unmarshal([]byte(text), &decoded); err != nil {
		t.Fatal(err)
	}
	return compiled, decoded
}

// The schema accepts what the decoder accepts, for each key and values of every type. It refuses each unknown key and
// each value of a wrong type that the decoder refuses.
func TestSchemaAgreesWithTheDecoder(t *testing.T) {
	compiled, root := published(t)
	samples := []string{`true`, `"true"`, `5`, `0`, `-1`, `0.5`, `"text"`, `"5"`, `"5m"`, `"64MiB"`, `"10/s"`,
		`"${X}"`, `""`, `[]`, `["text"]`, `[["text"]]`, `[{}]`, `{}`, `{"zzzz":1}`, `{"zzzz":{}}`,
		`{"zzzz":{"zzzz":1}}`,
		`{"zzzz":[]}`, `{"zzzz":["a"]}`,
		`{"zzzz":null}`, `null`}
	checked := 0
	walk(root, nil, func(path []string, node object) {
		for _, word := range words(node) {
			samples := append(slices.Clone(samples), word)
			for _, sample := range samples {
				text := document(path, sample)
				_, err := load(t, text, envOf(map[string]string{"X": "5"}))
				refused := compiled.Validate(json.RawMessage(text))
				checked++
				if err == nil && refused != nil {
					t.Errorf("the decoder accepts %s, the schema does not: %v", text, refused)
				}
				var wrong *Error
				if refused == nil && errors.As(err, &wrong) && wrongType.MatchString(wrong.Message) &&
					!strings.Contains(sample, "${") {
					t.Errorf("the schema accepts %s, the decoder does not: %v", text, err)
				}
			}
		}
	})
	if checked < 1000 {
		t.Errorf("got %d documents, want more", checked)
	}
}

// wrongType matches the decoder's messages about types and keys, but not those about ranges and contents.
var wrongType = regexp.MustCompile(`^unknown key|must be (a mapping|a list|a single value|a size|a time|` +
	`a whole number|a number|true or false|one of|an amount)| has no value$`)

// words returns texts for a value of the schema: those of its enum, or one.
func words(node object) []string {
	alternatives, _ := node["anyOf"].([]any)
	for _, alternative := range alternatives {
		if choices, ok := alternative.(object)["enum"].([]any); ok {
			text, _ := json.Marshal(choices[0])
			return []string{string(text)}
		}
	}
	return []string{`"text"`}
}

// walk calls each for every key of the schema.
func walk(node object, path []string, each func(path []string, node object)) {
	properties, _ := node["properties"].(object)
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		at := append(slices.Clone(path), key)
		each(at, properties[key].(object))
		walk(properties[key].(object), at, each)
	}
	if more, ok := node["additionalProperties"].(object); ok {
		at := append(slices.Clone(path), "x")
		each(at, more)
		walk(more, at, each)
	}
}

// siblings are the keys that the decoder wants beside others.
var siblings = map[string]object{
	"models.x": {"url": "https://example.com/v1"}, "kernel.actions.x": {"server": "x", "tool": "t"},
	"profiles.x": {"servers": []string{"x"}}, "auth.scopes.x": {"rights": []string{"run"}},
	"approvals.webhooks.x": {"url": "https://x.example", "secret": "keyring:x"},
	"auth.roles.x":         {"groups": []string{"x"}}, "auth.signIn": {"clientId": "x"},
	"auth.signIn.groups.x": {"rights": []string{"run"}}, "auth.signIn.everyone": {"rights": []string{"run"}},
	"auth": {"issuer": "https://a.example.com", "audience": "https://b.example.com/mcp"},
}

// document returns a configuration with a JSON value at the path.
func document(path []string, value string) string {
	root := object{"mcpServers": object{"x": object{"command": "a"}}}
	if slices.Contains([]string{"url", "serverUrl", "httpUrl", "headers"}, path[len(path)-1]) ||
		len(path) > 2 && path[2] == "oauth" {
		root["mcpServers"] = object{"x": object{"url": "https://example.com/mcp"}}
	}
	at := root
	for i, key := range path {
		if i == len(path)-1 {
			at[key] = json.RawMessage(value)
			break
		}
		next, ok := at[key].(object)
		if !ok {
			next = object{}
			at[key] = next
		}
		if beside := siblings[strings.Join(path[:i+1], ".")]; beside != nil {
			maps.Copy(next, beside)
		}
		at = next
	}
	text, _ := json.Marshal(root)
	return string(text)
}

// Every object of the schema has the keys that the decoder knows, and refuses others.
func TestSchemaHasEveryKey(t *testing.T) {
	_, root := published(t)
	objects := 0
	walk(object{"properties": object{"": root}}, nil, func(path []string, node object) {
		path = path[1:]
		for _, one := range alternatives(node) {
			properties, ok := one["properties"].(object)
			if !ok {
				continue
			}
			objects++
			text := `{"qqqqqqqq":1}`
			if len(path) > 0 {
				text = document(path, text)
			}
			_, err := load(t, text, envOf(nil))
			var wrong *Error
			if !errors.As(err, &wrong) {
				t.Errorf("%s: got %v, want an unknown key", text, err)
				continue
			}
			known := strings.Split(strings.TrimPrefix(wrong.Advice, "the keys known here are "), ", ")
			slices.Sort(known)
			if want := slices.Sorted(maps.Keys(properties)); !slices.Equal(known, want) {
				t.Errorf("%v: the decoder knows %q (%v), the schema %q", path, known, err, want)
			}
		}
	})
	if objects < 25 {
		t.Errorf("got %d objects, want more", objects)
	}
}

func alternatives(node object) []object {
	all := []object{node}
	several, _ := node["anyOf"].([]any)
	for _, one := range several {
		all = append(all, one.(object))
	}
	return all
}

// The configurations that are shown and shipped have the schema.
func TestSchemaAcceptsTheExamples(t *testing.T) {
	compiled, _ := published(t)
	root := testenv.RepoRoot(t)
	files, err := filepath.Glob(filepath.Join(root, "examples", "*", "airlock.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d examples, %v", len(files), err)
	}
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[file] = string(text)
	}
	shipped, err := os.ReadFile(filepath.Join(root, "packaging", "airlock.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(shipped), "$schema=../../usr/share/doc/airlock/docs/airlock.schema.json") {
		t.Error("packaging/airlock.yaml does not name the schema")
	}
	texts["packaging/airlock.yaml"] = regexp.MustCompile(`(?m)^#((?:[a-z]|  ).*)$`).ReplaceAllString(string(shipped),
		"$1")
	for _, page := range []string{"configuration.md"} {
		for i, block := range strings.Split(readDocs(t, page), "```yaml\n")[1:] {
			block, _, _ := strings.Cut(block, "```")
			texts[fmt.Sprintf("%s block %d", page, i)] = block
		}
	}
	for name, text := range texts {
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := compiled.Validate(encoded); err != nil && value != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The configurations of deploy/kubernetes are read with the environment of a Pod.
func TestNodesOfKubernetesHaveConfigurations(t *testing.T) {
	for _, dir := range []string{"base", "example"} {
		file := filepath.Join(testenv.RepoRoot(t), "deploy", "kubernetes", dir, "airlock.yaml")
		pod := map[string]string{"POD_IP": "10.1.2.3"}
		c, err := Load(file, func(name string) (string, bool) { value, ok := pod[name]; return value, ok })
		if err != nil {
			t.Error(err)
			continue
		}
		if c.Cluster.Advertise != "10.1.2.3:7824" || !slices.Contains(c.Serve.Hosts, "10.1.2.3") || !c.Serve.Proxy {
			t.Errorf("%s: nodes are reached at %q, the names are %q", dir, c.Cluster.Advertise, c.Serve.Hosts)
		}
	}
}
