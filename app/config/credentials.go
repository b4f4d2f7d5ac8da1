package config

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/internal/secret"
)

// Credential is a value of the configuration that is a credential. It is redacted everywhere.
type Credential struct {
	Name   string // of the variable, header or flag; never the value
	Server string // empty for a variable in another part of the file
	Why    string // such as "a reference to keyring:crm"
	Value  secret.Value
}

// String returns the name and the reason why the value is a credential.
func (h Credential) String() string {
	if h.Server == "" {
		return fmt.Sprintf("%s (%s)", h.Name, h.Why)
	}
	return fmt.Sprintf("%s of %q (%s)", h.Name, h.Server, h.Why)
}

// AllCredentials returns the credentials, sorted by server and name: references, values whose name is
// that of a credential, authorization headers, passwords in addresses, and values that the
// file declares to be secret. An ordinary value is a credential only if it is declared.
func (c *Config) AllCredentials() []Credential {
	var list []Credential
	public := c.publicValues()
	seen := map[string]bool{}
	for _, v := range c.Credentials {
		if !public[v.Value.Reveal()] && !isOrdinary(v.Value.Reveal()) && !seen[v.Name] {
			seen[v.Name] = true
			list = append(list, Credential{Name: v.Name, Why: "a variable whose name says so", Value: v.Value})
		}
	}
	if key := c.Embeddings.Key; key.Reveal() != "" {
		list = append(list, Credential{Name: "search.embeddings.key", Why: "the key of an endpoint", Value: key})
	}
	if key := c.Registry.Token; key.Reveal() != "" {
		list = append(list, Credential{Name: "registry.token", Why: "the token of a registry", Value: key})
	}
	if key := c.Auth.SignIn.ClientSecret; key.Reveal() != "" {
		list = append(list, Credential{Name: "auth.signIn.clientSecret", Why: "a credential of a sign-in", Value: key})
	}
	for _, w := range c.Approvals.Webhooks {
		at := "approvals.webhooks." + w.Name
		list = append(list, Credential{Name: at + ".secret", Why: "the secret of a webhook", Value: w.Secret},
			Credential{Name: at + ".url", Why: "the address of a webhook", Value: secret.New(w.URL)})
	}
	for _, m := range c.Kernel.Models {
		if m.Key.Reveal() != "" {
			list = append(list,
				Credential{Name: "models." + m.Name + ".key", Why: "the key of an endpoint", Value: m.Key})
		}
	}
	for _, s := range c.Servers {
		list = append(list, s.held()...)
	}
	return list
}

// publicValues returns the values that the file declares public, by their own name or by the
// name of their variable.
func (c *Config) publicValues() map[string]bool {
	public := map[string]bool{}
	for _, s := range c.Servers {
		for _, name := range s.Settings.Public {
			for _, values := range []map[string]secret.Value{s.Env, s.Headers} {
				if v, ok := values[name]; ok {
					public[v.Reveal()] = true
				}
			}
			for _, v := range c.Credentials {
				if v.Name == name {
					public[v.Value.Reveal()] = true
				}
			}
		}
	}
	return public
}

// Undeclared returns the values of env and headers that are neither known to be credentials
// nor declared public.
func (s Server) Undeclared() []Credential {
	var list []Credential
	for _, values := range []map[string]secret.Value{s.Env, s.Headers} {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			named := s.References[name] != "" || slices.Contains(s.Settings.Secrets, name) || NamesCredential(name)
			if !named && !slices.Contains(s.Settings.Public, name) {
				list = append(list, Credential{Name: name, Server: s.ID, Value: values[name]})
			}
		}
	}
	return list
}

func (s Server) held() []Credential {
	var list []Credential
	add := func(name, why, value string) {
		list = append(list, Credential{Name: name, Server: s.ID, Why: why, Value: secret.New(value)})
	}
	for _, values := range []map[string]secret.Value{s.Env, s.Headers} {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			value := values[name].Reveal()
			reference := s.References[name]
			switch {
			case slices.Contains(s.Settings.Public, name):
			case reference != "":
				add(name, "a reference to "+reference, value)
			case slices.Contains(s.Settings.Secrets, name):
				add(name, "declared a secret", value)
			case NamesCredential(name) && !isOrdinary(value):
				add(name, "its name says so", value)
			default:
				for _, part := range addressCredentials(value) {
					add(name, "a password in an address", part)
				}
				continue
			}
			if !slices.Contains(s.Settings.Public, name) {
				for _, part := range headerCredentials(value) {
					add(name, "what a header authorizes with", part)
				}
			}
		}
	}
	for _, flag := range flagValues(s.Args) {
		isDeclared := slices.Contains(s.Settings.Secrets, flag.name)
		if !slices.Contains(s.Settings.Public, flag.name) &&
			(isDeclared || NamesCredential(flag.name) && !isOrdinary(flag.value)) {
			add(flag.name, "a flag whose name says so", flag.value)
		}
	}
	if o := s.Settings.OAuth; o != nil {
		secrets := o.Secrets()
		for _, name := range slices.Sorted(maps.Keys(secrets)) {
			if value := secrets[name].Reveal(); value != "" {
				add(name, "a credential of a sign-in", value)
			}
		}
	}
	for _, arg := range s.Args {
		for _, part := range addressCredentials(arg) {
			add("args", "a password in an address", part)
		}
	}
	for _, part := range addressCredentials(s.URL) {
		add("url", "a password in an address", part)
	}
	return list
}

// headerCredentials returns the credentials after the scheme of an Authorization header, and
// the password of Basic (RFC 7617).
func headerCredentials(value string) []string {
	scheme, rest, ok := strings.Cut(value, " ")
	if rest = strings.TrimSpace(rest); !ok || rest == "" || strings.Contains(rest, " ") {
		return nil
	}
	found := []string{rest}
	if plain, err := base64.StdEncoding.DecodeString(rest); err == nil && strings.EqualFold(scheme, "basic") {
		if _, password, ok := strings.Cut(string(plain), ":"); ok {
			found = append(found, password)
		}
	}
	return found
}

type flagValue struct{ name, value string }

// flagValues returns flags with their values, written as --api-key=VALUE or as
// --api-key VALUE, and variables handed on as -e NAME=VALUE.
func flagValues(args []string) []flagValue {
	var found []flagValue
	for i, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		switch {
		case joined && (strings.HasPrefix(name, "-") || isVariableName(name)):
			found = append(found, flagValue{name, value})
		case strings.HasPrefix(name, "-") && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
			if value := args[i+1]; !strings.Contains(value, "=") || NamesCredential(name) {
				found = append(found, flagValue{name, value})
			}
		case strings.Contains(name, ":") && !strings.Contains(name, "://"): // --header "Authorization: Bearer …"
			if header, value, ok := strings.Cut(arg, ":"); ok {
				value = strings.TrimSpace(value)
				found = append(found, flagValue{header, value})
				for _, part := range headerCredentials(value) {
					found = append(found, flagValue{header, part})
				}
			}
		}
	}
	return found
}

// addressCredentials returns the password of an address and the values of its
// query that name a credential.
func addressCredentials(address string) []string {
	if !strings.Contains(address, "://") {
		return nil
	}
	parsed, err := url.Parse(address)
	if err != nil {
		return passwordBeforeHost(address)
	}
	var found []string
	if password, ok := parsed.User.Password(); ok {
		found = append(found, password)
		_, raw, _ := strings.Cut(parsed.User.String(), ":")
		if raw != password {
			found = append(found, raw)
		}
	}
	for name, values := range parsed.Query() {
		if NamesCredential(name) {
			found = append(found, values...)
		}
	}
	slices.Sort(found)
	return slices.DeleteFunc(found, isOrdinary)
}

// passwordBeforeHost matches passwords that are not escaped in an address.
func passwordBeforeHost(address string) []string {
	_, rest, _ := strings.Cut(address, "://")
	at := strings.LastIndexByte(rest, '@')
	if at < 0 {
		return nil
	}
	if _, password, ok := strings.Cut(rest[:at], ":"); ok && !isOrdinary(password) {
		return []string{password}
	}
	return nil
}
