package app

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
)

// Settings reads flags and the environment into a command line's struct, and
// gathers what is wrong with values instead of stopping at the first.
type Settings struct {
	problems []error
}

// Options are the kong options by which a program of ours reads its settings.
func (s *Settings) Options(prefix string) []kong.Option {
	return []kong.Option{
		kong.DefaultEnvars(prefix),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, Summary: true, WrapUpperBound: 100}),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), s.gather(func(text string, into reflect.Value) error {
			d, err := time.ParseDuration(text)
			into.SetInt(int64(d))
			return err
		}, "a duration such as 10s")),
		kong.KindMapper(reflect.Int, s.gather(func(text string, into reflect.Value) error {
			n, err := strconv.Atoi(text)
			into.SetInt(int64(n))
			return err
		}, "a whole number")),
	}
}

// gather returns a mapper that notes an unreadable value, and lets the next one be read.
func (s *Settings) gather(set func(string, reflect.Value) error, want string) kong.Mapper {
	return kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
		var text string
		if err := ctx.Scan.PopValueInto(ctx.Value.Name, &text); err != nil {
			return err
		}
		if err := set(text, target); err != nil {
			s.problems = append(s.problems, fmt.Errorf("--%s: %q is not %s", ctx.Value.Name, text, want))
			_ = set(ctx.Value.Default, target) // so that no other rule complains of it, too
		}
		return nil
	})
}

// Problems returns what was unreadable.
func (s *Settings) Problems() error { return errors.Join(s.problems...) }
