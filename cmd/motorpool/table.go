package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"motorpool/telematics"
)

// stdout and stderr are where this program prints, all of it but files and JSON that other programs
// read: texts that units or fleet files have set must not control the terminal.
var stdout, stderr = &terminal{to: &os.Stdout}, &terminal{to: &os.Stderr}

// terminal writes printable text. It keeps line feeds and tabs, which cell and oneLine remove from
// texts.
type terminal struct {
	to     **os.File
	failed error // of the last write that failed
}

func (t *terminal) Write(text []byte) (int, error) {
	lines := strings.SplitAfter(string(text), "\n")
	for i, line := range lines {
		line, ended := strings.CutSuffix(line, "\n")
		cells := strings.Split(line, "\t")
		for k := range cells {
			cells[k] = telematics.Printable(cells[k])
		}
		if lines[i] = strings.Join(cells, "\t"); ended {
			lines[i] += "\n"
		}
	}
	if _, err := (unchanged{t}).Write([]byte(strings.Join(lines, ""))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// unchanged writes what other programs read: all of the text, as it is.
type unchanged struct{ *terminal }

func (u unchanged) Write(text []byte) (int, error) {
	n, err := (*u.to).Write(text)
	if err != nil {
		u.failed = err
	}
	return n, err
}

// presentation is how data is printed.
type presentation struct {
	Output string `enum:"auto,table,json" default:"auto" placeholder:"FORMAT" help:"table, json, or auto: table on a terminal, else json."`
}

// wantsTable reports whether tables are printed.
func (p presentation) wantsTable() bool {
	if p.Output == "table" || p.Output == "json" {
		return p.Output == "table"
	}
	to, err := os.Stdout.Stat()
	return err == nil && to.Mode()&os.ModeCharDevice != 0
}

// print prints JSON, or a table with the columns; without any, with a line for each member.
func (p presentation) print(data json.RawMessage, columns []column) error {
	if p.wantsTable() {
		return printTable(stdout, data, columns)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, data, "", "  "); err != nil {
		return err
	}
	fmt.Fprintln(stdout, string(telematics.EscapeJSON(pretty.Bytes())))
	return nil
}

// printValue is print for a value of this program.
func (p presentation) printValue(value any, columns []column) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return p.print(data, columns)
}

// column is a column of a table: its head, and where its values are, as members joined by dots.
// "LAST SEEN connectivity.last_seen" is one.
type column string

// printTable prints an array with a row for each element, and an object with a row for each member.
func printTable(to io.Writer, data json.RawMessage, columns []column) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber() // an odometer is not 1.2e+06
	var value any
	if err := decoder.Decode(&value); err != nil {
		return err
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	switch value := value.(type) {
	case []any:
		printRows(table, value, columns)
	case map[string]any:
		printMembers(table, "", value)
	}
	return table.Flush()
}

func printRows(table io.Writer, rows []any, columns []column) {
	heads, paths := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		at := strings.LastIndexByte(string(c), ' ')
		heads[i], paths[i] = string(c[:at]), string(c[at+1:])
	}
	fmt.Fprintln(table, strings.Join(heads, "\t"))
	for _, row := range rows {
		cells := make([]string, len(columns))
		for i, path := range paths {
			cells[i] = cell(member(row, path))
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
}

// printMembers prints a row for each member that is not null.
func printMembers(table io.Writer, prefix string, object map[string]any) {
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch value := object[name].(type) {
		case nil:
		case map[string]any:
			printMembers(table, prefix+name+".", value)
		default:
			fmt.Fprintf(table, "%s\t%s\n", prefix+name, cell(value))
		}
	}
}

// member returns the value at a path, or nil.
func member(value any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}

// cell returns the text of a value, on one line.
func cell(value any) string {
	switch value := value.(type) {
	case nil:
		return "-"
	case string:
		return telematics.Printable(value)
	case []any:
		parts := make([]string, len(value))
		for i, element := range value {
			parts[i] = cell(element)
		}
		return strings.Join(parts, ", ")
	case map[string]any:
		text, err := json.Marshal(value)
		if err != nil {
			return "-"
		}
		return string(telematics.EscapeJSON(text))
	}
	return fmt.Sprint(value)
}
