package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/airlock-mcp/airlock/internal/reach"
)

// bucket is a store in a bucket of an S3-compatible server.
type bucket struct {
	client       *minio.Client
	name, prefix string // the prefix is empty or ends in a slash
}

const (
	// retries is how often a request is repeated that did not reach the server.
	retries = 3
	// platformTime is how long a request for credentials of the platform may take.
	platformTime = 5 * time.Second
)

func openBucket(u *url.URL) (*bucket, error) {
	at := &url.URL{Scheme: "https", Host: "s3.amazonaws.com"}
	region := ""
	for key, values := range u.Query() {
		var err error
		switch key {
		case "endpoint":
			if at, err = url.Parse(values[0]); err != nil || at.Host == "" || at.Path != "" ||
				at.Scheme != "https" && at.Scheme != "http" {
				return nil, errors.New("endpoint is not a URL such as https://host:9000")
			}
		case "region":
			region = values[0]
		default:
			return nil, fmt.Errorf("the parameter %q is not one of endpoint and region", key)
		}
	}
	transport := reach.NewTransport(reach.Configured(), nil)
	client, err := minio.New(at.Host, &minio.Options{
		Creds: credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{},
			&credentials.FileAWSCredentials{},
			&credentials.IAM{Client: &http.Client{Timeout: platformTime, Transport: transport}}}),
		Secure: at.Scheme == "https", Region: region, MaxRetries: retries,
		Transport: transport,
	})
	if err != nil {
		return nil, err
	}
	b := &bucket{client: client, name: u.Host}
	if prefix := strings.Trim(path.Clean(u.Path), "/."); prefix != "" {
		b.prefix = prefix + "/"
	}
	return b, nil
}

func (b *bucket) put(ctx context.Context, name string, content []byte) error {
	_, err := b.client.PutObject(ctx, b.name, b.prefix+name, bytes.NewReader(content), int64(len(content)),
		minio.PutObjectOptions{ContentType: "application/octet-stream", DisableMultipart: true})
	return err
}

func (b *bucket) get(ctx context.Context, name string) ([]byte, error) {
	object, err := b.client.GetObject(ctx, b.name, b.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, err
	}
	defer object.Close()
	content, err := readBounded(object)
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return nil, fs.ErrNotExist
	}
	return content, err
}

func (b *bucket) delete(ctx context.Context, name string) error {
	return b.client.RemoveObject(ctx, b.name, b.prefix+name, minio.RemoveObjectOptions{})
}
