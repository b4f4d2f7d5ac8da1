package config

import (
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/airlock-mcp/airlock/audit/witness"
	"github.com/airlock-mcp/airlock/egress"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// top reads the whole file into c. Servers and their settings are joined last, so that the
// order of keys does not matter.
func (d *decoder) top(root *yaml.Node, c *Config) error {
	settings := map[string]*decided{}
	var fields []field
	switch {
	case d.isHostFile():
		fields = d.hostFields(root, c)
	case isVSCodeFile(root):
		fields = append(d.vscodeFields(c), ignored("inputs"), ignored("$schema")) // inputs: see variable
	default:
		fields = append(d.topFields(c, settings), ignored("$schema"))
	}
	if err := d.object(root, "", fields); err != nil {
		return err
	}
	if err := d.unite(c, settings); err != nil {
		return err
	}
	if err := d.contained(c, settings); err != nil {
		return err
	}
	if err := d.checkProfiles(c); err != nil {
		return err
	}
	c.Credentials = d.credentials
	return d.consistent(root, c)
}

// topFields are the top-level keys of an Airlock file.
func (d *decoder) topFields(c *Config, settings map[string]*decided) []field {
	return []field{
		{key: "mcpServers", read: d.servers(c)},
		{key: "servers", read: d.settings(settings)},
		{key: "sandbox", read: func(n *yaml.Node, path string) error {
			for _, key := range hostLimits {
				if child(n, key) != nil {
					c.Sandbox.Asked = append(c.Sandbox.Asked, key)
				}
			}
			err := d.object(n, path, d.sandboxFields(&c.Sandbox))
			if child(n, "backgroundTimeout") == nil {
				c.Sandbox.BackgroundTimeout = max(c.Sandbox.BackgroundTimeout, c.Sandbox.Timeout)
			}
			return err
		}},
		{key: "runs", read: func(n *yaml.Node, path string) error {
			return d.object(n, path, []field{
				{key: "suspendAfter", val: duration{&c.Runs.SuspendAfter, 0, 24 * time.Hour}},
				{key: "suspendedSize", val: size{&c.Runs.SuspendedSize, 64 << 20, 1 << 40}},
			})
		}},
		{key: "profiles", read: d.profiles(c)},
		{key: "limits", read: d.limits(&c.Limits)},
		{key: "policies", read: d.paths(&c.Policies)},
		{key: "audit", read: func(n *yaml.Node, path string) error {
			if err := d.object(n, path, d.auditFields(&c.Audit)); err != nil {
				return err
			}
			return d.witness(n, path, c.Audit)
		}},
		{key: "secrets", read: func(n *yaml.Node, path string) error {
			err := d.object(n, path, d.secretsFields(&c.Secrets))
			if err == nil && c.Secrets.AgeIdentity != "" && c.Secrets.AgeFile == "" {
				err = d.fail(child(n, "ageIdentity"), "name the encrypted file as "+join(path, "ageFile")+", too",
					"%s is given, but no encrypted file that it decrypts", join(path, "ageIdentity"))
			}
			return err
		}},
		{key: "redaction", read: func(n *yaml.Node, path string) error {
			return d.object(n, path, d.redactionFields(c))
		}},
		{key: "replay", read: func(n *yaml.Node, path string) error {
			return d.object(n, path, d.replayFields(&c.Replay))
		}},
		{key: "tools", read: func(n *yaml.Node, path string) error {
			return d.object(n, path, d.toolsFields(c))
		}},
		{key: "registry", read: func(n *yaml.Node, path string) error {
			return d.object(n, path, d.registryFields(&c.Registry))
		}},
		{key: "search", read: func(n *yaml.Node, path string) error {
			return d.object(n, path, []field{{key: "embeddings", read: func(n *yaml.Node, path string) error {
				return d.object(n, path, d.embeddingsFields(&c.Embeddings))
			}}})
		}},
		{key: "models", read: d.models(&c.Kernel.Models)},
		{key: "kernel", read: func(n *yaml.Node, path string) error {
			return d.object(n, path, d.kernelFields(&c.Kernel))
		}},
		{key: "agents", read: func(n *yaml.Node, path string) error {
			return d.object(n, path, d.agentsFields(&c.Agents))
		}},
		{key: "cluster", read: d.cluster(&c.Cluster)},
		{key: "approvals", read: func(n *yaml.Node, path string) error {
			return d.object(n, path, d.approvalFields(&c.Approvals))
		}},
		{key: "serve", read: d.serve(&c.Serve)},
		{key: "images", read: func(n *yaml.Node, path string) error {
			return d.object(n, path, d.imagesFields(&c.Images))
		}},
		{key: "auth", read: d.auth(&c.Auth)},
		{key: "verify", read: func(n *yaml.Node, path string) error {
			return d.object(n, path, d.verifyFields(&c.Verify))
		}},
		{key: "attachments", read: func(n *yaml.Node, path string) error {
			return d.object(n, path, d.attachmentsFields(&c.Attachments))
		}},
		{key: "session", read: func(n *yaml.Node, path string) error {
			return d.object(n, path, d.sessionFields(&c.Session))
		}},
		{key: "face", read: func(n *yaml.Node, path string) error {
			return d.object(n, path, d.faceFields(&c.Face))
		}},
	}
}

// hostLimits are the limits that only the control groups of the machine can enforce.
var hostLimits = []string{"memory", "cpus", "pids"}

func (d *decoder) sandboxFields(s *Sandbox) []field {
	return []field{
		{key: "driver", val: word{&s.Driver, []string{"runsc", "containerd"}}},
		{key: "memory", val: size{&s.Memory, 64 << 20, 1 << 40}},
		{key: "cpus", val: cores{&s.CPUs, 0.1, 256}},
		{key: "pids", val: count[int]{&s.PIDs, 8, 32768}},
		{key: "disk", val: size{&s.Disk, 1 << 20, 1 << 40}},
		{key: "inodes", val: count[int64]{&s.Inodes, 256, 1 << 30}},
		{key: "openFiles", val: count[uint64]{&s.OpenFiles, 64, 1 << 20}},
		{key: "timeout", val: duration{&s.Timeout, 100 * time.Millisecond, 24 * time.Hour}},
		{key: "backgroundTimeout", val: duration{&s.BackgroundTimeout, 100 * time.Millisecond, 24 * time.Hour}},
		{key: "pool", val: count[int]{&s.Pool, 0, 1024}},
		{key: "maxSandboxes", val: count[int]{&s.MaxSandboxes, 1, 4096}},
		{key: "queue", val: count[int]{&s.Queue, 0, 65536}},
		{key: "network", read: d.network(&s.Network)},
		{key: "containerd", read: func(n *yaml.Node, path string) error {
			return d.object(n, path, d.containerdFields(&s.Containerd))
		}},
	}
}

// maxHosts is the number of hosts that runs may ask for.
const maxHosts = 256

// network reads the hosts that runs may ask for: "none", or a list of NAME:PORT.
func (d *decoder) network(to *[]egress.Host) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		if n.Kind != yaml.SequenceNode {
			text, err := d.text(n, path)
			if err == nil && text != "none" {
				err = d.fail(n, "list hosts, such as [api.github.com:443], and permit them by policy (docs/egress.md)",
					"%s can only be none or a list of hosts, not %q: code in a sandbox reaches named hosts only", path,
					text)
			}
			*to = nil
			return err
		}
		if len(n.Content) > maxHosts {
			return d.fail(n, "list fewer", "%s has %d hosts, at most %d are allowed", path, len(n.Content), maxHosts)
		}
		*to = nil
		return d.items(n, path, func(n *yaml.Node, path string) error {
			text, err := d.text(n, path)
			if err != nil {
				return err
			}
			host, err := egress.ParseHost(text)
			if err != nil {
				return d.fail(n, "write NAME:PORT, such as api.github.com:443", "%s: %v", path, err)
			}
			*to = append(*to, host)
			return nil
		})
	}
}

func (d *decoder) containerdFields(c *Containerd) []field {
	return []field{
		{key: "address", read: d.path(&c.Address)},
		{key: "snapshotter", val: free{&c.Snapshotter}},
		{key: "shim", read: d.path(&c.Shim)},
	}
}

// limits reads the profile first: the keys beside it override its values.
func (d *decoder) limits(l *Limits) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		if at := child(n, "profile"); at != nil {
			name := l.Profile
			if err := d.scalar(at, join(path, "profile"), d.profileWord(&name)); err != nil {
				return err
			}
			for _, p := range profiles {
				if p.name == name {
					*l = p.limits
				}
			}
		}
		return d.object(n, path, d.limitFields(l))
	}
}

func (d *decoder) limitFields(l *Limits) []field {
	return []field{
		{key: "profile", val: d.profileWord(&l.Profile)},
		{key: "stdout", val: size{&l.Stdout, 0, 64 << 20}},
		{key: "stderr", val: size{&l.Stderr, 0, 64 << 20}},
		{key: "output", val: size{&l.Output, 1 << 10, 1 << 30}},
		{key: "calls", val: count[int]{&l.Calls.Run, 1, 1_000_000}},
		{key: "sessionCalls", val: count[int]{&l.Calls.Session, 1, 1_000_000_000}},
		{key: "concurrentCalls", val: count[int]{&l.Calls.Concurrent, 1, 64}}, // the socket takes 64 at a time
		{key: "callTimeout", val: duration{&l.Calls.Timeout, 100 * time.Millisecond, 24 * time.Hour}},
		{key: "approvalTimeout", val: duration{&l.Calls.ApprovalTimeout, 100 * time.Millisecond, 24 * time.Hour}},
		{key: "bytesIn", val: size{&l.Calls.BytesIn, 1 << 10, 1 << 50}},
		{key: "bytesOut", val: size{&l.Calls.BytesOut, 1 << 10, 1 << 50}},
		{key: "resultBytes", val: size{&l.Calls.ResultBytes, 1 << 10, 15 << 20}}, // a frame of the socket holds 16 MiB
		{key: "largeResultBytes", val: size{&l.Calls.LargeResultBytes, 1 << 10, 1 << 30}},
		{key: "unreadBytes", val: size{&l.Calls.UnreadBytes, 1 << 10, 1 << 30}},
		{key: "repeats", val: count[int]{&l.Calls.Repeats, 1, 1_000_000}},
		{key: "rate", val: rate{&l.Calls.ServerRate}},
		{key: "toolRate", val: rate{&l.Calls.ToolRate}},
		{key: "catalogRate", val: rate{&l.Calls.CatalogRate}},
	}
}

func (d *decoder) profileWord(to *string) word {
	names := make([]string, len(profiles))
	for i, p := range profiles {
		names[i] = p.name
	}
	return word{to, names}
}

func (d *decoder) auditFields(a *Audit) []field {
	return []field{
		{key: "path", read: d.path(&a.Path)},
		{key: "keep", val: duration{&a.Keep, 0, 100 * 366 * 24 * time.Hour}},
		{key: "clearArguments", val: flag{&a.ClearArguments}},
		{key: "keepArguments", val: duration{&a.KeepArguments, 0, 366 * 24 * time.Hour}},
		{key: "argumentsSize", val: size{&a.ArgumentsSize, 1 << 20, 1 << 40}},
		{key: "witness", val: free{&a.Witness}},
		{key: "witnessKey", val: free{&a.WitnessKey}},
		{key: "witnessDelay", val: duration{&a.WitnessDelay, 0, 24 * time.Hour}},
		{key: "durability", val: word{&a.Durability, []string{Local, Replicated}}},
	}
}

// witness checks that the keys of the witness are consistent. It does not connect to it.
func (d *decoder) witness(n *yaml.Node, path string, a Audit) error {
	if a.Witness == "" {
		if a.WitnessKey != "" {
			return d.fail(child(n, "witnessKey"), "name the witness as "+join(path, "witness")+", too",
				"%s is the key of a witness that is not named", join(path, "witnessKey"))
		}
		return nil
	}
	if _, err := witness.Open(a.Witness, a.WitnessKey); err != nil {
		return d.fail(child(n, "witness"), "docs/audit.md lists which witnesses there are", "%s: %v", path, err)
	}
	return nil
}

func (d *decoder) secretsFields(s *Secrets) []field {
	return []field{
		{key: "ageFile", read: d.path(&s.AgeFile)},
		{key: "ageIdentity", read: d.path(&s.AgeIdentity)},
		{key: "keyring", val: free{&s.Keyring}},
	}
}

func (d *decoder) replayFields(r *Replay) []field {
	return []field{
		{key: "keep", val: duration{&r.Keep, 0, 366 * 24 * time.Hour}},
		{key: "size", val: size{&r.Size, 1 << 20, 1 << 40}},
	}
}

func (d *decoder) attachmentsFields(a *Attachments) []field {
	return []field{
		{key: "files", val: count[int]{&a.Files, 0, 50}},               // the line of a run names them all
		{key: "fileBytes", val: size{&a.FileBytes, 1 << 10, 11 << 20}}, // a frame of the socket holds 16 MiB, encoded
		{key: "bytes", val: size{&a.Bytes, 1 << 10, 1 << 30}},
		{key: "keep", val: duration{&a.Keep, time.Minute, 366 * 24 * time.Hour}},
		{key: "size", val: size{&a.Size, 1 << 20, 1 << 40}},
	}
}

func (d *decoder) sessionFields(s *Session) []field {
	return []field{
		{key: "bytes", val: size{&s.Bytes, 0, 1 << 30}},
		{key: "files", val: count[int]{&s.Files, 1, 100_000}},
		{key: "size", val: size{&s.Size, 1 << 20, 1 << 40}},
	}
}

func (d *decoder) faceFields(f *Face) []field {
	return []field{{key: "callTool", val: flag{&f.CallTool}}}
}

func (d *decoder) toolsFields(c *Config) []field {
	return []field{
		{key: "ttl", val: duration{&c.Refresh, 10 * time.Second, 24 * time.Hour}},
	}
}

func (d *decoder) embeddingsFields(e *Embeddings) []field {
	return []field{
		{key: "table", read: d.path(&e.Table)},
		{key: "url", val: free{&e.URL}},
		{key: "model", val: free{&e.Model}},
		{key: "key", read: func(n *yaml.Node, path string) error {
			text, err := d.text(n, path)
			e.Key = secret.New(text)
			return err
		}},
		{key: "dimensions", val: count[int]{&e.Dimensions, 0, 8192}},
		{key: "timeout", val: duration{&e.Timeout, 10 * time.Millisecond, time.Minute}},
		{key: "batch", val: count[int]{&e.Batch, 1, 2048}},
	}
}

func (d *decoder) redactionFields(c *Config) []field {
	return []field{
		{key: "placeholders", val: flag{&c.Placeholders}},
		{key: "personalData", read: d.personal(&c.Personal)},
	}
}

// consistent checks rules that involve several values.
func (d *decoder) consistent(root *yaml.Node, c *Config) error {
	if sandbox := child(root, "sandbox"); sandbox != nil && child(sandbox, "containerd") != nil &&
		c.Sandbox.Driver != "containerd" {
		return d.fail(sandbox, "write `driver: containerd` beside it, or remove it",
			"sandbox.containerd is set, but sandbox.driver is %s", c.Sandbox.Driver)
	}
	if err := d.escalates(root, c); err != nil {
		return err
	}
	if c.Sandbox.Pool > c.Sandbox.MaxSandboxes {
		return d.fail(root, "raise sandbox.maxSandboxes or lower sandbox.pool",
			"sandbox.pool (%d) is larger than sandbox.maxSandboxes (%d)", c.Sandbox.Pool, c.Sandbox.MaxSandboxes)
	}
	if c.Verify.Pool > c.Verify.MaxSandboxes {
		return d.fail(root, "raise verify.maxSandboxes or lower verify.pool",
			"verify.pool (%d) is larger than verify.maxSandboxes (%d)", c.Verify.Pool, c.Verify.MaxSandboxes)
	}
	if err := d.embeddingsFit(root, &c.Embeddings); err != nil {
		return err
	}
	if c.Audit.Durability == Replicated && c.Cluster.Objects == "" {
		return d.fail(child(root, "audit"), "name both: cluster.database and cluster.objects",
			"audit.durability is %s, and there is no cluster with an object store", Replicated)
	}
	if calls := c.Limits.Calls; calls.ResultBytes > calls.UnreadBytes {
		return d.fail(root, "raise limits.unreadBytes or lower limits.resultBytes",
			"limits.resultBytes (%s) is larger than limits.unreadBytes (%s)", showSize(calls.ResultBytes),
			showSize(calls.UnreadBytes))
	}
	return nil
}

// embeddingsFit checks that exactly one source is configured completely.
func (d *decoder) embeddingsFit(root *yaml.Node, e *Embeddings) error {
	n := child(root, "search")
	switch {
	case n == nil:
		return nil
	case e.Table != "" && e.URL != "":
		return d.fail(n, "keep one of the two", "search.embeddings has both a table and a url")
	case e.URL != "" && e.Model == "":
		return d.fail(n, "write the name of the endpoint's model as `model`",
			"search.embeddings has a url, but no model")
	case e.URL == "" && (e.Model != "" || e.Key.Reveal() != ""):
		return d.fail(n, "write the endpoint's address as `url`", "search.embeddings has a model or a key, but no url")
	}
	return nil
}

// child returns the value of key in the mapping n, or nil.
func child(n *yaml.Node, key string) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}
