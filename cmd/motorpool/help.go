package main

import (
	"errors"
	"fmt"
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

// helpFor says where to read on after a command line that is wrong, or returns nil.
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
