// Command oidc-provider is the example of an OpenID provider that comes with
// github.com/zitadel/oidc, for tests that sign in at a real one. It keeps everything in
// memory, listens on the loopback interface, prints its issuer as the first line, and
// ends with its stdin.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	address := flag.String("listen", "127.0.0.1:0", "where to listen")
	client := flag.String("client", "airlock", "the ID of a public client")
	redirect := flag.String("redirect", "http://127.0.0.1/callback", "its redirect URI; any port is taken")
	flag.Parse()
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		return err
	}
	issuer := "http://" + listener.Addr().String()
	storage.RegisterClients(storage.NativeClient(*client, *redirect))
	kept := storage.NewStorage(storage.NewUserStore(issuer))
	server := &http.Server{
		Handler:           exampleop.SetupServer(issuer, kept, slog.New(slog.DiscardHandler), false),
		ReadHeaderTimeout: 10 * time.Second,
	}
	go func() {
		io.Copy(io.Discard, os.Stdin) // ends when who started this ends
		server.Close()
	}()
	fmt.Println(issuer)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
