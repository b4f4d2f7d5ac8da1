package hosts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/configfile"
	"github.com/airlock-mcp/airlock/app/contained"
	"github.com/airlock-mcp/airlock/app/hosts"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// Init is airlock init.
type Init struct {
	Host      []string `placeholder:"HOST" help:"Only this host. May be given several times."`
	Project   bool     `help:"Also the hosts' files of the project in this directory, which others may share."`
	Config    string   `type:"path" placeholder:"FILE" help:"The configuration that servers are moved to; by default airlock/airlock.yaml in the user's configuration directory."`
	Contain   bool     `help:"Also give each server that npx, uvx, node or python starts a sandbox, and show for each what it asks for."`
	Yes       bool     `short:"y" help:"Do it without asking."`
	Unchecked bool     `help:"Change the files without a check of this machine, a build of missing images and a first start; for machines that are set up by a script."`
	Undo      bool     `xor:"what" help:"Take back what init did to the hosts' files."`
	Print     string   `xor:"what" placeholder:"HOST" help:"Only print what to add to the host's file by hand."`
	JSON      bool     `name:"json" help:"Print JSON; nothing is asked, and without --yes nothing is changed."`
}

// Help lists the hosts.
func (Init) Help() string { return "The hosts are " + hostIDs() + "." }

// Run moves the servers from the hosts' files to Airlock's configuration, or undoes that.
func (v *Init) Run(ctx context.Context, s *verb.Streams) error {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return err
	}
	record := filepath.Join(home, "hosts.json")
	switch {
	case v.Undo:
		return v.undo(s, record)
	case v.Print != "":
		return v.print(s)
	}
	plan, err := v.plan()
	if err != nil {
		return err
	}
	proposals, err := v.propose(plan)
	if err != nil {
		return err
	}
	if v.JSON {
		if v.Yes {
			err = v.apply(ctx, s, plan, proposals, record)
		}
		shown := planJSON(plan, v.Yes && err == nil)
		if v.Contain {
			shown["servers"] = proposalsJSON(proposals)
		}
		return errors.Join(err, verb.PrintLine(s.Out, shown))
	}
	printPlan(s, plan)
	if environment, err := verb.HostEnvironment(); err == nil && len(v.Host) == 0 {
		for _, path := range hosts.Dialogs(environment) {
			fmt.Fprintf(s.Err, "airlock: servers in %s (JetBrains AI Assistant) stay there\n"+
				"hint: remove them in the IDE's settings, and paste the output of airlock init --print junie there\n",
				verb.OneLine(path, 400))
		}
	}
	printProposals(s.Out, proposals)
	if len(plan.Changes) == 0 && !plan.Contained {
		return nil
	}
	if agreed, err := v.agreed(s); err != nil || !agreed {
		return err
	}
	if err := v.apply(ctx, s, plan, proposals, record); err != nil {
		return err
	}
	printRules(s.Out, proposals)
	fmt.Fprintf(s.Out, "Done. Restart the hosts; airlock init --undo takes it back.\n\n%s", remedy(plan.Config))
	return nil
}

// apply carries the plan out. Before that, it proves that Airlock starts with the plan, unless
// --unchecked is given.
func (v *Init) apply(ctx context.Context, s *verb.Streams, plan *hosts.Plan, proposals []contained.Proposal,
	record string) error {
	if (len(plan.Changes) > 0 || plan.Contained) && !v.Unchecked {
		if err := v.prove(ctx, s, plan, proposals); err != nil {
			return err
		}
	}
	if err := plan.Apply(record, validateConfig); err != nil {
		return verb.WithHint(err, "nothing was changed; airlock init --host HOST tries one host alone", verb.ExitFailed)
	}
	return confirmBesideAgents(ctx, plan.Config)
}

// plan reads the hosts' files and returns the changes to make.
func (v *Init) plan() (*hosts.Plan, error) {
	environment, err := verb.HostEnvironment()
	if err != nil {
		return nil, err
	}
	files, err := hosts.Look(environment, v.Host, v.Project)
	if err != nil {
		return nil, verb.Usage(err.Error(), "the hosts are "+hostIDs())
	}
	path, err := v.configPath()
	if err != nil {
		return nil, err
	}
	before, err := store.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, verb.Usage(fmt.Sprintf("reading %q: %v", path, err), "name another file with --config")
	}
	command, err := ownCommand(path)
	if err != nil {
		return nil, err
	}
	return hosts.NewPlan(files, path, before, command)
}

// configPath returns the file that --config names, or the user's default file.
func (v *Init) configPath() (string, error) {
	if v.Config != "" {
		return filepath.Abs(v.Config) // hosts start Airlock in other working directories
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", verb.Usage(err.Error(), "name a file with --config")
	}
	return filepath.Join(dir, "airlock", "airlock.yaml"), nil
}

// pathInUse returns the configuration that a host's file should name: the file of --config, else
// the file that this program would use, else the user's default file. In the last case, it prints
// that the file does not exist.
func (v *Init) pathInUse(s *verb.Streams) (string, error) {
	path, err := v.configPath()
	if v.Config != "" || err != nil {
		return path, err
	}
	directory, err := os.Getwd()
	if err != nil {
		return "", err
	}
	if found := configfile.Find(directory, os.LookupEnv); found != "" {
		return filepath.Abs(found)
	}
	fmt.Fprintf(s.Err, "airlock: %s is not there yet: airlock init makes it\n", path)
	return path, nil
}

// ownCommand returns the command with which a host starts this program with the configuration.
func ownCommand(path string) (hosts.Command, error) {
	program, err := os.Executable()
	if err != nil {
		return hosts.Command{}, fmt.Errorf("finding this program: %w", err)
	}
	c, err := config.Load(path, os.LookupEnv)
	if err != nil { // it is not there yet, or lacks a variable that the host has
		c = config.Default()
	}
	command := hosts.Command{Path: program, Args: []string{"mcp", "--config", path}, CallTime: c.CallTime()}
	if home := os.Getenv("AIRLOCK_HOME"); home != "" {
		if home, err = filepath.Abs(home); err != nil {
			return command, err
		}
		command.Env = map[string]string{"AIRLOCK_HOME": home}
	}
	return command, nil
}

// validateConfig returns an error if the configuration file is not valid.
func validateConfig(path string) error {
	_, err := config.Load(path, os.LookupEnv)
	return err
}

func hostIDs() string {
	var ids []string
	for _, host := range hosts.All() {
		ids = append(ids, host.ID)
	}
	return strings.Join(ids, ", ")
}

// agreed asks whether to carry the plan out. Without a terminal it prints a hint and returns false.
func (v *Init) agreed(s *verb.Streams) (bool, error) {
	if v.Yes {
		return true, nil
	}
	if !v.asks(s) {
		fmt.Fprintf(s.Err, "airlock: nothing was changed\nhint: airlock init --yes does what is listed above\n")
		return false, nil
	}
	yes, err := v.ask(s, "Do this? A backup of each file is kept beside it. [y/N] ")
	if err == nil && !yes {
		fmt.Fprintln(s.Out, "Nothing was changed.")
	}
	return yes, err
}

// printPlan prints the changes to each file, and why other files are not changed.
func printPlan(s *verb.Streams, plan *hosts.Plan) {
	for _, file := range plan.Skipped {
		if file.Err != nil {
			fmt.Fprintf(s.Err, "airlock: %s (%s) is left alone: %v\n", file.Path, file.Host.Title, file.Err)
			continue
		}
		fmt.Fprintf(s.Out, "%s (%s): Airlock is registered already\n", file.Path, file.Host.Title)
	}
	if len(plan.Changes) == 0 {
		if len(plan.Skipped) == 0 {
			fmt.Fprintf(s.Err, "airlock: no configuration of a host was found\nhint: airlock init --print HOST shows "+
				"what to add by hand; hosts are %s\n", hostIDs())
		}
		return
	}
	if len(plan.Imports) > 0 {
		fmt.Fprintf(s.Out, "%s gains\n", plan.Config)
		for _, imported := range plan.Imports {
			fmt.Fprintf(s.Out, "  + %s\n", verb.OneLine(imported.Entry.Name, 60))
			fmt.Fprintf(s.Out, "      %s\n", visible.Line(verb.Clean(verb.OneLine(imported.Entry.Start(), 400))))
			if imported.Was != "" {
				fmt.Fprintf(s.Out, "      %q is another server there already\n", verb.OneLine(imported.Was, 60))
			}
			if left := imported.Entry.Left; len(left) > 0 {
				fmt.Fprintf(s.Out, "      note: %s of the host's file is not imported: use policies, servers.*.deny, "+
					"profiles and mcpServers.*.callTimeout\n", strings.Join(left, ", "))
			}
			if imported.Unsigned {
				fmt.Fprintf(s.Out, "      note: it has no credentials. If it requires a sign-in: airlock login %s, "+
					"or write a token under headers\n", visible.Word(imported.Entry.Name))
			}
		}
	}
	for _, change := range plan.Changes {
		fmt.Fprintf(s.Out, "%s (%s)\n", change.File.Path, change.File.Host.Title)
		if target := change.File.LinkTarget(); target != "" {
			fmt.Fprintf(s.Out, "  is a link: what changes is %s\n", visible.Line(verb.OneLine(target, 400)))
		}
		if !change.File.Registered {
			fmt.Fprintf(s.Out, "  + %s\n", hosts.Name)
		}
		for _, name := range change.Remove {
			fmt.Fprintf(s.Out, "  - %s, which moves behind Airlock\n", verb.OneLine(name, 60))
		}
		for _, name := range change.File.Elsewhere {
			fmt.Fprintf(s.Out, "    %s stays there: it is a server of one project\n", verb.OneLine(name, 160))
		}
		for _, entry := range change.Stay {
			fmt.Fprintf(s.Out, "    %s stays there: %s\n", verb.OneLine(entry.Name, 60), verb.OneLine(entry.Stays, 160))
		}
	}
}

// planJSON returns the output of --json. It has the names of servers, never their values.
func planJSON(plan *hosts.Plan, applied bool) map[string]any {
	imports, files := []any{}, []any{}
	for _, imported := range plan.Imports {
		imports = append(imports, map[string]any{
			"name": imported.Entry.Name, "start": verb.Clean(imported.Entry.Start()), "from": imported.From,
			"not_taken_over": append([]string{}, imported.Entry.Left...), "no_credentials": imported.Unsigned,
		})
	}
	for _, change := range plan.Changes {
		stay := []any{}
		for _, entry := range change.Stay {
			stay = append(stay, map[string]any{"name": entry.Name, "reason": entry.Stays})
		}
		for _, name := range change.File.Elsewhere {
			stay = append(stay, map[string]any{"name": name, "reason": "it is a server of one project"})
		}
		remove := append([]string{}, change.Remove...)
		files = append(files, map[string]any{"host": change.File.Host.ID, "path": change.File.Path,
			"target": change.File.LinkTarget(), "moved": remove, "stay": stay})
	}
	for _, file := range plan.Skipped {
		skipped := map[string]any{"host": file.Host.ID, "path": file.Path, "registered": file.Registered}
		if file.Err != nil {
			skipped["error"] = file.Err.Error()
		}
		files = append(files, skipped)
	}
	return map[string]any{"config": plan.Config, "imports": imports, "files": files, "applied": applied}
}

func (v *Init) undo(s *verb.Streams, record string) error {
	undone, err := hosts.Undo(record)
	if v.JSON {
		files := []any{}
		for _, file := range undone {
			files = append(files, map[string]any{"path": file.Path, "done": file.How})
		}
		return errors.Join(err, verb.PrintLine(s.Out, map[string]any{"files": files}))
	}
	for _, file := range undone {
		fmt.Fprintf(s.Out, "%s: %s\n", file.Path, file.How)
	}
	if err != nil {
		return err
	}
	if len(undone) == 0 {
		fmt.Fprintln(s.Out, "There is nothing to undo.")
		return nil
	}
	fmt.Fprintln(s.Out, "Airlock's own configuration stays where it is.")
	return nil
}

// print shows how to register Airlock by hand: the path of the host's file on stderr, and the text
// to add on stdout.
func (v *Init) print(s *verb.Streams) error {
	host, known := hosts.Find(v.Print)
	if !known {
		return verb.Usage(fmt.Sprintf("there is no host %q", v.Print), "the hosts are "+hostIDs())
	}
	environment, err := verb.HostEnvironment()
	if err != nil {
		return err
	}
	path, err := v.pathInUse(s)
	if err != nil {
		return err
	}
	command, err := ownCommand(path)
	if err != nil {
		return err
	}
	snippet, err := host.Snippet(command)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Err, "airlock: add this to %s\n", host.UserFile(environment))
	_, err = fmt.Fprint(s.Out, snippet)
	return err
}
