package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// help shows what --help shows.
type help struct {
	Command []string `arg:"" optional:"" help:"The command (default the list of all)."`
}

func (h help) Run(parser *kong.Kong) error {
	traced, err := kong.Trace(parser, h.Command)
	if err != nil {
		return badUsage("%w", err)
	}
	if traced.Error != nil {
		return badUsage("%w", traced.Error)
	}
	return traced.PrintUsage(false)
}

// helpFor returns a reference to the help that fits a wrong command line; nil for other errors.
func helpFor(err error) error {
	var wrong *kong.ParseError
	if !errors.As(err, &wrong) {
		return nil
	}
	words := []string{"motorpool help"}
	for _, p := range wrong.Context.Path {
		if p.Command != nil {
			words = append(words, p.Command.Name)
		}
	}
	return fmt.Errorf("see: %s", strings.Join(words, " "))
}

// completion prints a completion script for a shell, generated from the commands themselves.
type completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// node is a command, with its full name, and the words that may follow it.
type node struct {
	path  string // empty: the program
	next  []word // commands
	flags []word
}

type word struct{ name, help string }

func (c completion) Run(parser *kong.Kong) error {
	nodes := completions(parser.Model.Node, "")
	switch c.Shell {
	case "bash":
		fmt.Fprint(stdout, bashCompletion(nodes))
	case "zsh":
		fmt.Fprint(stdout, "#compdef motorpool\nautoload -U +X bashcompinit && bashcompinit\n"+bashCompletion(nodes))
	case "fish":
		fmt.Fprint(stdout, fishCompletion(nodes))
	}
	return nil
}

func completions(n *kong.Node, path string) []node {
	here := node{path: path}
	var below []node
	for _, child := range n.Children {
		if child.Hidden || child.Type != kong.CommandNode {
			continue
		}
		here.next = append(here.next, word{child.Name, child.Help})
		below = append(below, completions(child, strings.TrimSpace(path+" "+child.Name))...)
	}
	for _, group := range n.AllFlags(true) {
		for _, flag := range group {
			here.flags = append(here.flags, word{"--" + flag.Name, flag.Help})
		}
	}
	return append([]node{here}, below...)
}

// bashCompletion finds the command that the words before the cursor begin with, and offers what may
// follow.
func bashCompletion(nodes []node) string {
	var cases strings.Builder
	for _, n := range slices.Backward(nodes) { // a command before the one above it
		begin := strings.TrimPrefix(n.path+" ", " ")
		fmt.Fprintf(&cases, "    %q*) words=%q ;;\n", begin, strings.Join(append(names(n.next), names(n.flags)...), " "))
	}
	return `_motorpool() {
  local current="${COMP_WORDS[COMP_CWORD]}" line="" words word
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) line="$line$word " ;; esac
  done
  case "$line" in
` + cases.String() + `  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "$current"))
}
complete -F _motorpool motorpool
`
}

func names(words []word) []string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = w.name
	}
	return list
}

func fishCompletion(nodes []node) string {
	var script strings.Builder
	for _, n := range nodes {
		condition := "__fish_use_subcommand"
		if n.path != "" {
			last := n.path[strings.LastIndex(n.path, " ")+1:]
			condition = "__fish_seen_subcommand_from " + last
		}
		for _, w := range n.next {
			fmt.Fprintf(&script, "complete -c motorpool -n '%s' -f -a %s -d %s\n", condition, w.name, fishText(w.help))
		}
		for _, w := range n.flags {
			fmt.Fprintf(
				&script, "complete -c motorpool -n '%s' -l %s -d %s\n", condition, strings.TrimPrefix(w.name, "--"),
				fishText(w.help),
			)
		}
	}
	return script.String()
}

func fishText(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}
