package system

import (
	"os"
	"strings"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/broker/secrets"
	"github.com/airlock-mcp/airlock/redact"
)

// printed knows the credentials of every configuration that this process has
// read, for what its commands print. It is one for the process, as its standard
// streams are: an error can come out of a part that knows no configuration.
var printed = redact.New()

// Printed returns the redactor for what the commands of this process print beside
// results: errors, notices, hints, checks. It knows the credentials of each
// configuration that was read, from then on.
func Printed() *redact.Redactor { return printed }

// Messages returns Printed for what verbs say beside results, what programs wrote
// included. Personal data stays in it, which the operator may have chosen to keep there.
func Messages() *redact.Redactor { return printed.With(redact.Personal{All: keepPersonal}) }

var keepPersonal = redact.Choices{
	"email": redact.Keep, "phone": redact.Keep, "card": redact.Keep, "iban": redact.Keep, "us-ssn": redact.Keep, "ip-address": redact.Keep,
}

// HoldPrinted makes Printed know the credentials of a configuration, as far as
// they are known without a look-up outside of the environment.
func HoldPrinted(c *config.Config) {
	for _, h := range held(c) {
		holdPrinted(h.Value.Reveal())
	}
	for _, server := range c.Servers { // what is no reference by the names of others
		for _, h := range server.Undeclared() {
			if secrets.IsReference(h.Value.Reveal()) {
				holdPrinted(h.Value.Reveal())
			}
		}
	}
}

// holdPrinted holds a value, or, where it is a reference to a credential, what it
// refers to and a name that is none.
func holdPrinted(value string) {
	if !secrets.IsReference(value) {
		printed.Hold(value)
		return
	}
	scheme, name, _ := strings.Cut(value, ":")
	if scheme == "env" {
		printed.Hold(os.Getenv(name))
	}
	if !config.IsName(name) {
		printed.Hold(name)
	}
}

// HoldMentioned is HoldPrinted for a file that is no configuration.
func HoldMentioned(path string) {
	for _, value := range config.Mentioned(path, os.LookupEnv) {
		printed.Hold(value.Reveal())
	}
}
