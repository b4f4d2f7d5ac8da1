// Package servers has the verbs about the configured servers: tools, profiles, sign-ins and wrappers.
package servers
