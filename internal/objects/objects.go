// Package objects keeps files that all nodes of a cluster reach: in a bucket of an S3-compatible store, or in a
// directory on shared storage. It is the only importer of the S3 client. The caller encrypts the files.
package objects

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

const (
	// maxObject is the most bytes of an object.
	maxObject = 64 << 20
	// operationTime is how long one operation may take, with its repetitions.
	operationTime = 30 * time.Second
)

// ErrTooLarge is returned for an object of more than 64 MiB.
var ErrTooLarge = errors.New("the object has more than 64 MiB")

// Store is an object store. Its methods are safe for concurrent use. Names are slash-separated paths, such as
// audit/origin/file.
type Store struct {
	backend backend
	address string // without credentials, for errors
}

// backend is one kind of store. Get returns an error that wraps fs.ErrNotExist for a missing object, and delete none.
type backend interface {
	put(ctx context.Context, name string, content []byte) error
	get(ctx context.Context, name string) ([]byte, error)
	delete(ctx context.Context, name string) error
}

// Open returns the store at an address:
//
//	file:///shared/path
//	s3://bucket/prefix?endpoint=https://host:9000&region=eu-central-1
//
// prefix, endpoint and region may be missing: then the endpoint is that of AWS. Credentials come from the environment
// (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY), from ~/.aws/credentials or from the platform (an IAM role, a web
// identity token). Open does not connect.
func Open(address string) (*Store, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the address of the object store is not a URL")
	}
	s := &Store{address: u.Redacted()}
	switch {
	case u.Scheme == "file" && u.Host == "" && filepath.IsAbs(u.Path) && u.RawQuery == "":
		s.backend = directory{filepath.Clean(u.Path)}
	case u.Scheme == "s3" && u.Host != "" && u.User == nil:
		s.backend, err = openBucket(u)
	default:
		err = errors.New("it is not one of file:///path and s3://bucket/prefix?endpoint=https://host:port&region=name")
	}
	if err != nil {
		return nil, fmt.Errorf("the object store %q: %w", s.address, err)
	}
	return s, nil
}

// do calls an operation on a valid name, with a time limit.
func (s *Store) do(ctx context.Context, name string, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, operationTime)
	defer cancel()
	err := errors.New("this is not the name of an object")
	if filepath.IsLocal(name) && name == filepath.ToSlash(filepath.Clean(name)) && !strings.Contains(name, "\\") {
		err = f(ctx)
	}
	if err != nil {
		return fmt.Errorf("the object store %q: %q: %w", s.address, name, err)
	}
	return nil
}

// Put stores an object, in place of one of this name. The object is there as a whole or not at all.
func (s *Store) Put(ctx context.Context, name string, content []byte) error {
	return s.do(ctx, name, func(ctx context.Context) error {
		if len(content) > maxObject {
			return ErrTooLarge
		}
		return s.backend.put(ctx, name, content)
	})
}

// Get returns an object. The error wraps fs.ErrNotExist if there is none.
func (s *Store) Get(ctx context.Context, name string) (content []byte, err error) {
	err = s.do(ctx, name, func(ctx context.Context) error {
		content, err = s.backend.get(ctx, name)
		return err
	})
	return content, err
}

// Rewrite replaces an object. rewrite returns the new content, or nil if the object stays. Rewrite reports whether it
// has replaced the object. A missing object is not an error.
func (s *Store) Rewrite(ctx context.Context, name string, rewrite func(content []byte) ([]byte, error)) (bool,
	error) {
	content, err := s.Get(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		content, err = rewrite(content)
	}
	if err != nil || content == nil {
		return false, err
	}
	return true, s.Put(ctx, name, content)
}

// Delete removes an object. It returns no error if there is none.
func (s *Store) Delete(ctx context.Context, name string) error {
	return s.do(ctx, name, func(ctx context.Context) error { return s.backend.delete(ctx, name) })
}
