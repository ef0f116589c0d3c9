package app

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
)

// Settings reads flags and the environment into a command line's struct, and collects the errors of
// all values instead of stopping at the first.
type Settings struct {
	problems []error
}

// Options returns the kong options of this project's programs. prefix begins the names of
// environment variables.
func (s *Settings) Options(prefix string) []kong.Option {
	return []kong.Option{
		kong.DefaultEnvars(prefix),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, Summary: true, WrapUpperBound: 100}),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), s.gather(func(text string, into reflect.Value) error {
			d, err := time.ParseDuration(text)
			if d < 0 {
				err = errors.New("negative")
			}
			into.SetInt(int64(d))
			return err
		}, "a duration such as 10s, zero or more")),
		kong.KindMapper(reflect.Int, s.gather(func(text string, into reflect.Value) error {
			n, err := strconv.Atoi(text)
			into.SetInt(int64(n))
			return err
		}, "a whole number")),
	}
}

// gather returns a mapper that collects the error of an invalid value, so that parsing continues.
func (s *Settings) gather(set func(string, reflect.Value) error, want string) kong.Mapper {
	return kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
		var text string
		if err := ctx.Scan.PopValueInto(ctx.Value.Name, &text); err != nil {
			return err
		}
		if err := set(text, target); err != nil {
			s.problems = append(s.problems, fmt.Errorf("--%s: %q is not %s", ctx.Value.Name, text, want))
			_ = set(ctx.Value.Default, target) // so that no other check reports it, too
		}
		return nil
	})
}

// Problems returns the errors of all invalid values, joined, or nil.
func (s *Settings) Problems() error { return errors.Join(s.problems...) }
