package config

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/airlock-mcp/airlock/internal/secret"
)

// Kernel configures the tools of the kernel face.
type Kernel struct {
	Models   []Model           // language models, in order of their names
	Actions  map[string]Action // what kernel_execute does, by action
	Policies []string          // absolute paths of Cedar files with named policies, beside the shipped ones
	Files    KernelFiles
}

// Model is a language model behind an endpoint with OpenAI's API.
type Model struct {
	Name    string       // as callers name it
	URL     string       // the base of the API, as in https://api.example.com/v1
	Model   string       // the endpoint's name of it; if the file has none, Name
	Key     secret.Value // a credential or a reference to one; empty sends none
	Timeout time.Duration
}

// Action is the tool of a server that an action calls.
type Action struct {
	Server string
	Tool   string
	SQL    string // the parameter with SQL, which determines if the action writes; if empty, the tool's risk does
}

// KernelFiles bounds the virtual file system of each agent.
type KernelFiles struct {
	Files     int   // of one agent
	FileBytes int64 // of one file
	Bytes     int64 // of all files of one agent
}

// defaultModelTimeout is how long a model may take to answer.
const defaultModelTimeout = time.Minute

func defaultKernel() Kernel {
	return Kernel{Files: KernelFiles{Files: 1000, FileBytes: 1 << 20, Bytes: 16 << 20}}
}

func (d *decoder) kernelFields(k *Kernel) []field {
	return []field{
		{key: "actions", read: d.actions(&k.Actions)},
		{key: "policies", read: d.paths(&k.Policies)},
		{key: "files", val: count[int]{&k.Files.Files, 1, 100_000}},
		{key: "fileBytes", val: size{&k.Files.FileBytes, 1 << 10, 8 << 20}}, // a message of a host has 16 MiB
		{key: "bytes", val: size{&k.Files.Bytes, 1 << 10, 1 << 30}},
	}
}

func (d *decoder) models(to *[]Model) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		*to = nil
		return d.entries(n, path, func(key, val *yaml.Node) error {
			m := Model{Name: key.Value, Model: key.Value, Timeout: defaultModelTimeout}
			if strings.TrimSpace(m.Name) == "" {
				return d.fail(key, "name it as callers do, such as gpt-4", "a model has no name")
			}
			at := join(path, m.Name)
			err := d.object(val, at, d.modelFields(&m))
			if err == nil && m.URL == "" {
				err = d.fail(val, "write the address of an endpoint that speaks OpenAI's API as `url`", "%s has no url",
					at)
			}
			i, _ := slices.BinarySearchFunc(*to, m.Name,
				func(m Model, name string) int { return strings.Compare(m.Name, name) })
			*to = slices.Insert(*to, i, m)
			return err
		})
	}
}

func (d *decoder) modelFields(m *Model) []field {
	return []field{
		{key: "url", val: address{&m.URL}},
		{key: "model", val: free{&m.Model}},
		{key: "key", val: hidden{&m.Key}},
		{key: "timeout", val: duration{&m.Timeout, 100 * time.Millisecond, 10 * time.Minute}},
	}
}

func (d *decoder) actionFields(a *Action) []field {
	return []field{{key: "server", val: free{&a.Server}}, {key: "tool", val: free{&a.Tool}},
		{key: "sql", val: free{&a.SQL}}}
}

func (d *decoder) actions(to *map[string]Action) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		*to = map[string]Action{}
		return d.entries(n, path, func(key, val *yaml.Node) error {
			at, a := join(path, key.Value), Action{}
			if strings.HasPrefix(key.Value, "database_") {
				a.SQL = "query"
			}
			err := d.object(val, at, d.actionFields(&a))
			switch {
			case err != nil:
			case slices.Contains(ownActions, key.Value):
				err = d.fail(key, "choose another name for it", "%s is an action of the kernel itself", at)
			case a.Server == "" || a.Tool == "":
				err = d.fail(val, "write both: {server: db, tool: query}", "%s needs a server and a tool", at)
			}
			(*to)[key.Value] = a
			return err
		})
	}
}

// ownActions are the actions that Airlock performs without a tool of a server.
var ownActions = []string{"execute_code", "file_delete", "file_list", "file_read", "file_write"}

// address is an address of an HTTP server without a credential in it.
type address struct{ to *string }

func (v address) set(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return errors.New("must be http:// or https:// and a host, without a credential, such as " +
			"https://api.openai.com/v1")
	}
	*v.to = text
	return nil
}
