// Command oidc-provider is the example of an OpenID provider that comes with
// github.com/zitadel/oidc, for tests that sign in at a real one. It keeps everything in
// memory, listens on the loopback interface, prints its issuer as the first line, and
// ends with its stdin. A line of stdin is a command, which a line of stdout answers:
// "done", or what is wrong.
//
//	rotate             sign with a new key, and publish it beside the old ones
//	retire             publish no key but the one that signs
//	clock DURATION     be wrong about the time, ahead of it or (with a minus) behind
//	lifetime DURATION  of access tokens made from now on; negative: they have expired
//	claim NAME VALUE   of grants (ID-JAG) made from now on, in place of the right one; without VALUE the right one
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
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
	clients := flag.String("client", "airlock", "the IDs of public clients, with commas between them")
	redirect := flag.String("redirect", "http://127.0.0.1/callback", "their redirect URI; any port is taken")
	scopes := flag.String(
		"scopes", "", "scopes that clients may ask for beside those of OpenID, with commas between them")
	jwt := flag.Bool("jwt", false,
		"access tokens are JWTs, whose audience has the resource that was asked for (RFC 8707)")
	confidential := flag.String("confidential", "", "the ID of a client with the secret \"hunter2\"")
	trusted := flag.String("trust", "", "the issuer whose grants (ID-JAG) are exchanged for access tokens")
	actorKey := flag.String("actors", "", "a file with the public key (PEM) of actor tokens")
	flag.Parse()
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		return err
	}
	issuer := "http://" + listener.Addr().String()
	for _, id := range strings.Split(*clients, ",") {
		storage.RegisterClients(storage.NativeClient(id, *redirect))
	}
	if *confidential != "" {
		storage.RegisterClients(storage.WebClient(*confidential, "hunter2", *redirect))
	}
	kept, err := newStore(storage.NewStorage(storage.NewUserStore(issuer)), *jwt, strings.Split(*scopes, ","))
	if err != nil {
		return err
	}
	if kept.issuer = issuer; *actorKey != "" {
		if kept.actors, err = publicKeyIn(*actorKey); err != nil {
			return err
		}
	}
	provider := withResource(exampleop.SetupServer(issuer, kept, slog.New(slog.DiscardHandler), false))
	server := &http.Server{
		Handler:           newExchanger(kept, provider, issuer, *trusted),
		ReadHeaderTimeout: 10 * time.Second,
	}
	fmt.Println(issuer)
	go func() {
		obey(kept, os.Stdin, os.Stdout) // ends when who started this ends
		server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// obey executes the commands in lines.
func obey(kept *store, in io.Reader, out io.Writer) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if err := kept.command(strings.Fields(lines.Text())); err != nil {
			fmt.Fprintln(out, err)
			continue
		}
		fmt.Fprintln(out, "done")
	}
}
