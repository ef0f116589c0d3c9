// Package settings reads flags and the environment, for all programs.
package settings

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"motorpool/httpapi/contract"
)

// Reader reads flags and the environment into a command line's struct, and collects the errors of
// all values instead of stopping at the first.
type Reader struct {
	problems []error
}

// Texts are help texts by their names: a help text may be ${name}. As variables of kong each would
// be searched for the others, for each flag again.
type Texts map[string]string

// Options returns the kong options of this project's programs. prefix begins the names of
// environment variables.
func (s *Reader) Options(prefix string, texts ...Texts) []kong.Option {
	var names []string
	for _, some := range texts {
		for name, text := range some {
			names = append(names, "${"+name+"}", text)
		}
	}
	named := strings.NewReplacer(names...)
	return []kong.Option{
		kong.DefaultEnvars(prefix),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, Summary: true, WrapUpperBound: 100}),
		kong.PostBuild(func(parser *kong.Kong) error {
			return kong.Visit(parser.Model.Node, func(visited kong.Visitable, next kong.Next) error {
				switch visited := visited.(type) {
				case *kong.Node:
					visited.Help = named.Replace(visited.Help)
				case *kong.Value:
					visited.Help = named.Replace(visited.Help)
					describeDefault(visited)
				}
				return next(nil)
			})
		}),
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

// describeDefault appends the default of a flag to its help text, which need not say it.
func describeDefault(v *kong.Value) {
	if v.Flag != nil && v.Default != "" && !strings.Contains(v.Help, "(default ") {
		v.Help = strings.TrimSuffix(v.Help, ".") + " (default ${default})."
	}
}

// gather returns a mapper that collects the error of an invalid value, so that parsing continues.
func (s *Reader) gather(set func(string, reflect.Value) error, want string) kong.Mapper {
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

// ErrUsage is what is wrong with a command line.
var ErrUsage = errors.New("wrong command line")

// ExitCode returns the exit code of a program that ends with an error: 2 for a wrong command line.
func ExitCode(err error) int {
	if errors.Is(err, ErrUsage) {
		return 2
	}
	return 1
}

// Parse parses a command line. Its error is an ErrUsage with all problems.
func (s *Reader) Parse(parser *kong.Kong, args []string) (*kong.Context, error) {
	parsed, err := parser.Parse(args)
	if err = errors.Join(s.Problems(), err); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	return parsed, nil
}

// Problems returns the errors of all invalid values, joined, or nil.
func (s *Reader) Problems() error { return errors.Join(s.problems...) }

// UnknownVariable is a variable that looks like a setting and is none.
type UnknownVariable struct {
	Name string
	Near string // the setting that was probably meant; empty: none
}

// String returns a sentence for people.
func (v UnknownVariable) String() string {
	if v.Near == "" {
		return v.Name + " is not a setting"
	}
	return v.Name + " is not a setting: did you mean " + v.Near + "?"
}

// LogUnknown logs a warning for each.
func LogUnknown(log *slog.Logger, unknown []UnknownVariable) {
	for _, variable := range unknown {
		log.Warn("unknown variable in the environment, ignored", "variable", variable.Name, "did_you_mean", variable.Near)
	}
}

// UnknownVariables returns the variables of an environment, as os.Environ returns it, that begin
// with the prefix and an underscore, and that no flag of the program reads. It leaves out variables
// of the programs with the other prefixes, and those that Kubernetes sets for its services.
func UnknownVariables(program *kong.Node, environment []string, prefix string, others ...string) []UnknownVariable {
	var known []string // without the prefix, which all have
	_ = kong.Visit(program, func(visited kong.Visitable, next kong.Next) error {
		if flag, ok := visited.(*kong.Flag); ok {
			for _, name := range flag.Envs {
				known = append(known, strings.TrimPrefix(name, prefix+"_"))
			}
		}
		return next(nil)
	})
	slices.Sort(known)
	known = slices.Compact(known)
	var unknown []UnknownVariable
	for _, variable := range environment {
		full, value, _ := strings.Cut(variable, "=")
		name, ours := strings.CutPrefix(full, prefix+"_")
		if !ours || slices.Contains(known, name) || setByKubernetes(name, value) ||
			slices.ContainsFunc(others, func(other string) bool { return strings.HasPrefix(full, other+"_") }) {
			continue
		}
		found := UnknownVariable{Name: full}
		if near := contract.Nearest(name, known); near != "" {
			found.Near = prefix + "_" + near
		}
		unknown = append(unknown, found)
	}
	slices.SortFunc(unknown, func(a, b UnknownVariable) int { return strings.Compare(a.Name, b.Name) })
	return unknown
}

// serviceVariable matches what Kubernetes names after a service, such as MOTORPOOL_SERVICE_HOST and
// MOTORPOOL_PORT_8080_TCP_ADDR.
var serviceVariable = regexp.MustCompile(`(^|_)(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

func setByKubernetes(name, value string) bool {
	return serviceVariable.MatchString(name) || (name == "PORT" || strings.HasSuffix(name, "_PORT")) && strings.Contains(value, "://")
}
