package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/canon"
	files "github.com/airlock-mcp/airlock/internal/store"
)

// Erasure selects kept arguments, and reports what was erased.
type Erasure struct {
	// Principal is on whose behalf the calls were made: a name, which selects the persons of all
	// issuers that have it, or an issuer, "#" and a name.
	Principal string   `json:"principal"`
	Period    Period   `json:"-"`     // of the calls; the zero value selects all
	By        Identity `json:"-"`     // who erases
	Calls     int      `json:"calls"` // how many calls had arguments that were erased
	Runs      []string `json:"runs"`  // the runs of the principal in the period, oldest first
	// Damaged are files that could not be read. They may still have arguments of the principal.
	Damaged []string `json:"damaged,omitempty"`
}

// EraseArguments removes the kept arguments of a person's calls. It first writes a record of the
// erasure, durably. The log itself stays as it is: it has keyed hashes only, unless
// Options.ClearArguments is set. dir and keys are the directories of the log. The error is
// ErrNoArgumentsKey if the private key is missing. Other processes can have the log open.
func (l *Log) EraseArguments(ctx context.Context, dir, keys string, e *Erasure) error {
	at, err := findPlaces(dir, keys)
	if err != nil {
		return err
	}
	identity, err := agekey.Load(filepath.Join(at.keys, argumentsKeyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNoArgumentsKey
	}
	if err != nil {
		return fmt.Errorf("the key of the kept arguments: %w", err)
	}
	runs := map[string]bool{}
	calls := map[[2]string]bool{}
	word := strconv.Quote("principal") + ":"
	err = each(dir, 1, word, func(r Record) error {
		if r.Principal != e.Principal && r.Issuer+"#"+r.Principal != e.Principal || !e.Period.Has(r) || r.RunID == "" {
			return ctx.Err()
		}
		if !runs[r.RunID] {
			runs[r.RunID] = true
			e.Runs = append(e.Runs, r.RunID)
		}
		calls[[2]string{r.RunID, r.CallID}] = true
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	erased := func(k keptArguments) bool { return calls[[2]string{k.RunID, k.CallID}] }
	paths, err := filepath.Glob(filepath.Join(argumentsDirectory(dir), "*"+argumentsSuffix))
	if err != nil {
		return err
	}
	err = l.Append(ctx, Record{Kind: KindOperator, Identity: e.By, Detail: fmt.Sprintf(
		"the kept arguments of calls for %q are erased; runs: %d", e.Principal, len(e.Runs))})
	if err != nil {
		return err
	}
	for _, path := range paths {
		n, err := eraseFrom(path, identity, erased)
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was too old
		case err != nil:
			e.Damaged = append(e.Damaged, path)
		}
		e.Calls += n
	}
	return nil
}

// eraseFrom replaces a file of kept arguments by one without the erased entries, and returns their
// number. The new file has a new key and the old time, so that it is removed when the old one would
// have been.
func eraseFrom(path string, identity *agekey.Key, erased func(keptArguments) bool) (n int, err error) {
	f, err := openPlain(path, os.O_RDONLY)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	err = files.WithLock(f, files.Exclusive, func() error {
		seal, text, err := newArgumentsFile(identity.Recipient())
		if err != nil {
			return err
		}
		count := uint64(0)
		err = eachKept(path, identity, func(k keptArguments) {
			if erased(k) {
				n++
				return
			}
			entry, encodeErr := canon.Verbatim(k)
			if encodeErr != nil {
				err = encodeErr
				return
			}
			text = append(text, sealEntry(seal, count, entry)...)
			count++
		})
		if err != nil || n == 0 {
			return err
		}
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if count == 0 {
			return os.Remove(path)
		}
		if err := files.WriteFile(path, text, 0o600); err != nil {
			return err
		}
		return os.Chtimes(path, time.Time{}, info.ModTime())
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}
