package config

import (
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/objects"
)

// Cluster configures a node of a cluster. With the zero value the state is in files of this machine.
type Cluster struct {
	Database Source // of the URL of the PostgreSQL database
	Key      Source // of the key, which the database does not get
	Node     string // the name of this node; empty means the name of the machine
	// Advertise is the host and port at which other nodes reach this one; empty: they do not.
	Advertise string
	Objects   string // the address of the object store, in the format of package internal/objects; empty: none
}

// Source is where a secret is read from: env:NAME, or file:PATH with an absolute path.
type Source string

func (d *decoder) clusterFields(c *Cluster) []field {
	return []field{
		{key: "database", read: d.source(&c.Database)},
		{key: "key", read: d.source(&c.Key)},
		{key: "advertise", read: d.advertised(&c.Advertise)},
		{key: "objects", read: func(n *yaml.Node, path string) error {
			err := d.scalar(n, path, free{&c.Objects})
			if err == nil {
				if _, opened := objects.Open(c.Objects); opened != nil {
					return d.fail(n, "write file:///shared/path or s3://bucket/prefix", "%s: %v", path, opened)
				}
			}
			return err
		}},
		{key: "node", read: func(n *yaml.Node, path string) error {
			err := d.scalar(n, path, free{&c.Node})
			if err == nil && cluster.CheckName(c.Node) != nil {
				return d.fail(n, "write a name such as node-1", "%s: %v", path, cluster.CheckName(c.Node))
			}
			return err
		}},
	}
}

func (d *decoder) cluster(c *Cluster) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		if err := d.object(n, path, d.clusterFields(c)); err != nil {
			return err
		}
		for key, source := range map[string]Source{"database": c.Database, "key": c.Key} {
			if source == "" && *c != (Cluster{}) {
				return d.fail(n, "docs/cluster.md shows both", "%s lacks the key %s", path, key)
			}
		}
		return nil
	}
}

// advertised reads the URL of a node, of which only the host and the port are used: https://10.0.0.7:7824.
func (d *decoder) advertised(to *string) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		text, err := d.text(n, path)
		if err != nil {
			return err
		}
		u, err := url.Parse(text)
		if err != nil || text != "https://"+u.Host || u.Hostname() == "" || (hostPort{to}).set(u.Host) != nil {
			return d.fail(n, "write it as https://10.0.0.7:7824", "%s is not a URL with https, a host and a port: %q",
				path, text)
		}
		if ip, err := netip.ParseAddr(u.Hostname()); err == nil && ip.IsUnspecified() {
			return d.fail(n, "name the address at which other nodes reach this one",
				"%s is every address of this machine: %q", path, text)
		}
		return nil
	}
}

// source reads {from: env:NAME} or {from: file:PATH}. A relative path is resolved against the file's directory.
func (d *decoder) source(to *Source) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		var from string
		if err := d.object(n, path, []field{{key: "from", val: free{&from}}}); err != nil {
			return err
		}
		scheme, name, _ := strings.Cut(from, ":")
		if scheme != "env" && scheme != "file" || name == "" {
			return d.fail(n, "write {from: env:NAME} or {from: file:PATH}",
				"%s is read from a variable of the environment or from a file", path)
		}
		if scheme == "file" && !filepath.IsAbs(name) {
			name = filepath.Join(d.dir, name)
		}
		*to = Source(scheme + ":" + name)
		return nil
	}
}
