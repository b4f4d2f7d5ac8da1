package database

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// oldest is the oldest version of PostgreSQL that is supported, as server_version_num.
const oldest = 14_00_00

// setupError is an error that the operator of a PostgreSQL database can correct.
type setupError struct {
	text, hint string
	cause      error // nil if the text has everything
}

// Error returns the text with its cause.
func (e *setupError) Error() string {
	if e.cause == nil {
		return e.text
	}
	return e.text + ": " + e.cause.Error()
}

// Unwrap returns the cause.
func (e *setupError) Unwrap() error { return e.cause }

// Hint returns what to do.
func (e *setupError) Hint() string { return e.hint }

// advise adds a hint to the error of opening a database.
func advise(err error, config *pgx.ConnConfig) error {
	var unreachable *pgconn.ConnectError
	switch {
	case errors.As(err, new(*setupError)):
		return err
	case errors.Is(err, ErrNewer):
		return &setupError{"its tables are of another version", "install that version of Airlock on all machines", err}
	case errors.Is(err, errStandby):
		return &setupError{errStandby.Error(),
			"name the primary, or all hosts: postgres://USER@HOST1,HOST2/DATABASE", nil}
	}
	if short := explain(err); short != nil {
		return short
	}
	switch code(err) {
	case "28000", "28P01":
		return &setupError{fmt.Sprintf("it does not accept the user %q with this password or certificate", config.User),
			"correct the user and the password in the URL, or pg_hba.conf", nil}
	case "3D000":
		return &setupError{"it does not exist", "make it: createdb --encoding UTF8 --template template0 " +
			config.Database, nil}
	case "42501":
		return &setupError{fmt.Sprintf("the user %q lacks rights", config.User),
			fmt.Sprintf("make it the owner: ALTER DATABASE %q OWNER TO %q", config.Database, config.User), err}
	case "42P07", "42723":
		return &setupError{"it has a table of this name that Airlock has not made",
			"use a separate database for Airlock: createdb --encoding UTF8 --template template0 NAME", err}
	}
	if errors.As(err, &unreachable) {
		return &setupError{"it cannot be reached", "start it, or correct the host and the port in the URL", err}
	}
	return err
}

// explain returns the error of a server that lacks something, with a hint, or nil.
func explain(err error) error {
	switch code(err) {
	case "53100":
		return &setupError{"its disk is full", "free space on the machine of PostgreSQL", err}
	case "53200":
		return &setupError{"it has too little memory", "give the machine of PostgreSQL more memory", err}
	case "53300":
		return &setupError{"it accepts no more connections",
			fmt.Sprintf("raise max_connections of PostgreSQL: each node opens up to %d", connections), err}
	}
	return nil
}
