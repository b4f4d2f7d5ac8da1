package registry

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/reach"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// Offer is one way to use a server: a package or an address.
type Offer struct {
	Kind    string // registryType of a package, or the type of an address
	What    string // the package with its version, or the address
	Refused string // why it cannot be added; empty if it can
	// Contained reports whether the server runs in a sandbox.
	Contained bool

	command, address string
	args             []string // of the command, before those of the package
	arguments        []Input
	environment      []Input
	headers          []Input
	variables        map[string]Input // of the address
	nearest          reach.Distance   // of the address
}

// launchers are the programs that start packages, by the registry of packages, with the address of the registry.
var launchers = map[string]struct {
	language, command, base, joint string
	args                           []string
}{
	"npm":  {"node", "npx", "https://registry.npmjs.org", "@", []string{"-y"}},
	"pypi": {"python", "uvx", "https://pypi.org", "@", nil},
}

// elsewhere are sentences about the kinds of packages that Airlock does not start, with what to do instead.
var elsewhere = map[string]string{
	"oci": "Airlock starts no images; run it with a program for containers: " +
		"airlock servers add NAME -- docker run -i --rm IMAGE",
	"mcpb": "Airlock installs no bundles; unpack it, and start the command of its manifest.json: " +
		"airlock servers add NAME -- COMMAND",
	"nuget": "Airlock starts no packages of NuGet; start it with .NET: " +
		"airlock servers add NAME -- dnx PACKAGE@VERSION --yes",
}

// exactVersion matches versions of one release: no ranges, and no tags such as latest.
var exactVersion = lazyregexp.New(`^[0-9]+(\.[0-9]+)*([-.+]?[a-zA-Z0-9]+)*$`)

func (p pack) offer() Offer {
	launcher, known := launchers[p.RegistryType]
	o := Offer{Kind: p.RegistryType, What: p.Identifier + "@" + p.Version, Contained: true, command: launcher.command,
		arguments: p.PackageArguments, environment: p.Environment}
	requirement := p.Identifier + launcher.joint + p.Version
	pinned := requirement
	if launcher.language == "python" {
		pinned = p.Identifier + "==" + p.Version
	}
	switch {
	case !known && elsewhere[p.RegistryType] != "":
		o.Refused = elsewhere[p.RegistryType]
	case !known:
		o.Refused = "packages of this kind are unknown"
	case p.RegistryBaseURL != "" && strings.TrimSuffix(p.RegistryBaseURL, "/") != launcher.base:
		o.Refused = "the package is not in " + launcher.base
	case p.Transport.Type != "stdio":
		o.Refused = "the program serves HTTP: start it, and add its address"
	case !exactVersion.MatchString(p.Version):
		o.Refused = "the version of the package is not that of one release"
	case len(p.Identifier) > 214 || images.CheckRequirement(launcher.language, pinned) != nil:
		o.Refused = "the name of the package is invalid"
	case slices.ContainsFunc(p.RuntimeArguments, func(a Input) bool { return !isYes(a) }):
		o.Refused = "it sets options of " + launcher.command
	}
	o.args = append(slices.Clone(launcher.args), requirement)
	if problem := unsafe(slices.Concat(o.arguments, o.environment), p.Environment); problem != "" && o.Refused == "" {
		o.Refused = problem
	}
	return o
}

// isYes reports whether an argument of a launcher is its answer to its own question, which Airlock writes anyway.
func isYes(a Input) bool {
	text := a.Name + a.Value
	return text == "-y" || text == "--yes"
}

// offer returns an address; nearest is how near it may be. A registry on this machine may name servers on it.
func (r remote) offer(nearest reach.Distance) Offer {
	o := Offer{Kind: r.Type, What: r.URL, address: r.URL, headers: r.Headers, variables: r.Variables, nearest: nearest}
	problem := unsafe(slices.Concat(r.Headers, slices.Collect(maps.Values(r.Variables))), r.Headers)
	switch {
	case r.Type != "streamable-http" && r.Type != "sse":
		o.Refused = "the transport is unknown"
	case !plain(r.URL):
		o.Refused = hiddenText
	case problem != "":
		o.Refused = problem
	default:
		o.Refused = checkAddress(placeholder.ReplaceAllString(r.URL, "x"), nearest)
	}
	return o
}

// checkAddress returns why an address cannot be used, or "".
func checkAddress(address string, nearest reach.Distance) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil {
		return "the address has no host, or a user"
	}
	distance := stated(u.Hostname())
	switch {
	case distance > nearest:
		return "the address is in a private network"
	case u.Scheme != "https" && (u.Scheme != "http" || distance != reach.Local):
		return "the address does not begin with https://"
	}
	return ""
}

// stated returns the distance of a host that follows from its name.
func stated(host string) reach.Distance {
	if distance, ok := reach.Stated(host); ok {
		return distance
	}
	return reach.Public
}

const hiddenText = "it has hidden characters, or names variables of this machine"

// plain reports whether a text of a registry can be written into a configuration: it would expand ${NAME}, to a
// credential of this machine for example.
func plain(text string) bool {
	return !strings.Contains(text, "$") && !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) || r != ' ' && !visible.Is(r)
	})
}

// inputName matches the names of variables and headers.
var inputName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_-]{0,127}$`)

// maxInputs is the number of values that a server may take.
const maxInputs = 64

// unsafe returns why values of a registry cannot be used, or "". named are those that have a name.
func unsafe(inputs, named []Input) string {
	if len(inputs) > maxInputs {
		return fmt.Sprintf("it takes more than %d values", maxInputs)
	}
	for _, in := range named {
		if !inputName.MatchString(in.Name) {
			return "the name of a variable or header is invalid"
		}
	}
	for _, in := range inputs {
		texts := append([]string{in.Name, in.Hint, in.Value, in.Default}, in.Choices...)
		for name, v := range in.Variables {
			texts = append(texts, name, v.Value, v.Default)
		}
		for _, text := range texts {
			if !plain(text) || len(text) > 4096 {
				return hiddenText
			}
		}
		if len(in.Variables) > maxInputs {
			return fmt.Sprintf("it takes more than %d values", maxInputs)
		}
	}
	return ""
}

// Asked is a value that is asked for.
type Asked struct {
	Name, Description, Default string
	Flag                       string // with which it is given
	Required, Secret           bool
	Choices                    []string
}

func asked(flag, name string, in Input) Asked {
	return Asked{name, in.Description, in.Default, flag, in.Required, in.Secret, in.Choices}
}

// Asked returns the values that the user can set, in the order of the registry.
func (o Offer) Asked() []Asked {
	var list []Asked
	add := func(flag, name string, in Input) {
		switch {
		case in.Value == "":
			list = append(list, asked(flag, name, in))
		default:
			for _, variable := range slices.Sorted(maps.Keys(in.Variables)) {
				list = append(list, asked("--set", variable, in.Variables[variable]))
			}
		}
	}
	for _, in := range o.environment {
		add("--env", in.Name, in)
	}
	for _, in := range o.headers {
		add("--header", in.Name, in)
	}
	for _, in := range o.arguments {
		add("--set", in.argumentName(), in)
	}
	for _, name := range slices.Sorted(maps.Keys(o.variables)) {
		add("--set", name, o.variables[name])
	}
	return list
}

// argumentName is the name by which the value of an argument is set.
func (i Input) argumentName() string {
	if i.Hint != "" {
		return i.Hint
	}
	return strings.TrimLeft(i.Name, "-")
}

// MissingError lists the required values that were not given.
type MissingError struct{ Asked []Asked }

// Error names the values.
func (e *MissingError) Error() string {
	names := make([]string, len(e.Asked))
	for i, a := range e.Asked {
		names[i] = a.Name
	}
	return "it needs values for " + strings.Join(names, ", ")
}

// Entry returns the entry of the configuration. values are those of the user, by name. The error is a *MissingError if
// a required value is missing.
func (o Offer) Entry(values map[string]string) (*config.ServerEntry, error) {
	f := &filling{values: values, used: map[string]bool{}}
	entry := &config.ServerEntry{Command: o.command, URL: f.text(o.address, o.variables),
		Env: map[string]string{}, Headers: map[string]string{}}
	if o.command != "" {
		entry.Args = slices.Clone(o.args)
	}
	for _, in := range o.arguments {
		value, given := f.value("--set", in.argumentName(), in)
		switch {
		case given && in.Type == "named":
			entry.Args = append(entry.Args, in.Name+"="+value)
		case given:
			entry.Args = append(entry.Args, value)
		}
	}
	for _, in := range o.environment {
		if value, given := f.value("--env", in.Name, in); given {
			entry.Env[in.Name] = value
		}
	}
	for _, in := range o.headers {
		if value, given := f.value("--header", in.Name, in); given {
			entry.Headers[in.Name] = value
		}
	}
	for name := range values {
		if !f.used[name] {
			return nil, fmt.Errorf("the server takes no value %q", name)
		}
	}
	if len(f.missing) > 0 {
		return nil, &MissingError{f.missing}
	}
	if o.address != "" && f.wrong == nil {
		if problem := checkAddress(entry.URL, o.nearest); problem != "" {
			return nil, errors.New(problem)
		}
	}
	return entry, f.wrong
}

// placeholder matches the places of variables in a value.
var placeholder = lazyregexp.New(`\{[a-zA-Z_][a-zA-Z0-9_.-]*\}`)

// filling puts values of the user into those of the registry.
type filling struct {
	values  map[string]string
	used    map[string]bool
	missing []Asked
	wrong   error // of the last value that is not one of the choices
}

// value returns the value of an input, and false if it has none.
func (f *filling) value(flag, name string, in Input) (string, bool) {
	if in.Value != "" {
		return f.text(in.Value, in.Variables), true
	}
	value, given := f.values[name]
	f.used[name] = true
	if !given {
		value = in.Default
	}
	switch {
	case value == "" && in.Required:
		f.missing = append(f.missing, asked(flag, name, in))
	case value != "" && len(in.Choices) > 0 && !slices.Contains(in.Choices, value):
		f.wrong = fmt.Errorf("%s must be one of %s", name, strings.Join(in.Choices, ", "))
	}
	return value, value != ""
}

// text replaces the variables in a text.
func (f *filling) text(text string, variables map[string]Input) string {
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		name := found[1 : len(found)-1]
		in, known := variables[name]
		if !known {
			return found
		}
		value, _ := f.value("--set", name, in)
		return value
	})
}
