package credentials

import (
	"os"
	"strings"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/broker/secrets"
	"github.com/airlock-mcp/airlock/redact"
)

// printed redacts the output of commands. It knows the credentials of every configuration that this
// process has read. It is a package variable because an error may be printed by code that has no
// configuration.
var printed = redact.New()

// Printed returns the redactor for the output of commands that is not a result: errors, notices,
// hints and checks. It knows the credentials of each configuration that was read, from then on.
func Printed() *redact.Redactor { return printed }

// Messages is Printed for messages that can contain the output of programs. It keeps personal data,
// because the operator may have configured to keep it there.
func Messages() *redact.Redactor { return printed.With(PersonalKept()) }

// HoldPrinted adds the credentials of a configuration to Printed. Of references, it resolves only
// environment variables.
func HoldPrinted(c *config.Config) {
	for _, h := range held(c) {
		holdPrinted(h.Value.Reveal())
	}
	for _, server := range c.Servers { // references in other environment variables
		for _, h := range server.Undeclared() {
			if secrets.IsReference(h.Value.Reveal()) {
				holdPrinted(h.Value.Reveal())
			}
		}
	}
}

// holdPrinted holds a value. If the value is a reference, holdPrinted holds the environment
// variable that it names and, if the part after the colon is not a valid name, that part.
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

// HoldMentioned is HoldPrinted for a file that is not a valid configuration.
func HoldMentioned(path string) {
	for _, value := range config.Mentioned(path, os.LookupEnv) {
		printed.Hold(value.Reveal())
	}
}
