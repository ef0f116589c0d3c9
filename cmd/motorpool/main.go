// Command motorpool is the service and the operator's tool.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"motorpool/internal/app"
	"motorpool/internal/settings"
	"motorpool/store/pg"
)

var version = "dev" // set by the build

type commandLine struct {
	Serve   serve   `cmd:"" help:"Run the service."`
	Migrate migrate `cmd:"" help:"Bring the database's schema up to date."`
	Import  load    `cmd:"" name:"import" help:"Import agencies, stations, vehicles and units from a fleet file; safe to repeat."`

	Prune prune `cmd:"" help:"Delete old commands and audit log entries. Run it as the role that owns the tables."`

	Halt   halt   `cmd:"" help:"Emergency stop: block all vehicle commands."`
	Resume resume `cmd:"" help:"Lift a halt."`
	Halts  halts  `cmd:"" help:"List the halts in force."`

	Seq seq `cmd:"" help:"Keep the numbers of commands growing."`

	Token    token            `cmd:"" help:"Print an access token for development, signed with a key of 'motorpool keys new'."`
	Keys     keys             `cmd:"" help:"Create and rotate the keys that sign commands, and print their public halves."`
	Passwd   passwd           `cmd:"" help:"Print the MQTT broker's password file for the units of a fleet file, or for the service."`
	Unit     unit             `cmd:"" help:"Manage the credentials of units at the MQTT broker."`
	Agency   agency           `cmd:"" help:"Manage the keys of agencies' apps."`
	Operator operatorAccounts `cmd:"" help:"Manage people who sign in to the console with a password, without an OpenID Connect issuer."`
	Sign     sign             `cmd:"" help:"Print the agency's signature of a request, as in curl -H \"$(motorpool sign …)\"."`

	Lock                   control   `cmd:"" group:"operator" help:"Lock all doors."`
	Unlock                 control   `cmd:"" group:"operator" help:"Unlock all doors."`
	EnableDriving          control   `cmd:"" group:"operator" help:"Release the immobilizer."`
	DisableDriving         control   `cmd:"" group:"operator" help:"Engage the immobilizer."`
	UnlockAndEnableDriving control   `cmd:"" group:"operator" help:"Hand the vehicle over."`
	LockAndDisableDriving  control   `cmd:"" group:"operator" help:"Take the vehicle back."`
	Attention              attention `cmd:"" group:"operator" help:"Sound the horn, flash the lights, or both."`
	OpenTopCase            control   `cmd:"" group:"operator" help:"Open the top case or battery compartment."`
	Status                 status    `cmd:"" group:"operator" help:"Show the vehicle's latest reported state."`
	Command                command   `cmd:"" group:"operator" help:"Show the state and result of a command."`

	Bulk       bulk        `cmd:"" group:"operator" help:"Send one command to many vehicles."`
	BulkStatus bulkStatus  `cmd:"" group:"operator" help:"Show the results of a bulk command."`
	Vehicles   vehicleList `cmd:"" group:"operator" help:"List vehicles."`
	Bookings   bookings    `cmd:"" group:"operator" help:"List bookings."`
	Activity   activity    `cmd:"" group:"operator" help:"List and export the audit log."`

	Alerts alerts `cmd:"" group:"operator" help:"List and acknowledge alerts, and set their rules."`
	Events events `cmd:"" group:"operator" help:"Print live events: commands, reports, connectivity."`

	Units units `cmd:"" help:"List telematics units, through a running service."`

	Version     printVersion `cmd:"" help:"Print the version."`
	Help        help         `cmd:"" help:"Show what a command does: motorpool help status."`
	Completion  completion   `cmd:"" help:"Print a script that completes commands and flags: source <(motorpool completion bash)."`
	ShowVersion showVersion  `name:"version" env:"-" help:"Print the version."`
}

func main() {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // by nohup
		ends = append(ends, syscall.SIGHUP) // also of a terminal that is closed
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		printError(err)
		os.Exit(exitCode(err))
	}
}

func printError(err error) {
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(stderr, "motorpool: %s\n", strings.TrimSpace(line))
	}
}

func run(ctx context.Context, args []string) error {
	var c commandLine
	var reader settings.Reader
	parser, err := kong.New(&c, append(reader.Options("MOTORPOOL", app.HelpTexts, helpTexts),
		kong.Name("motorpool"),
		kong.Description(
			"The control plane of a shared vehicle fleet. Most flags can be set by the environment, as their help says: "+
				"--mqtt-url is MOTORPOOL_MQTT_URL.",
		),
		kong.ExplicitGroups([]kong.Group{{Key: "operator", Title: "Operate a vehicle, through a running service:"}}),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(&reader),
	)...)
	if err != nil {
		return err
	}
	unknown := settings.UnknownVariables(parser.Model.Node, os.Environ(), "MOTORPOOL", "MOTORPOOL_DEV", "MOTORPOOL_SIM")
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if err == nil && parsed.Command() == "serve" { // which logs and adds what it finds itself
		return parsed.Run(unknown)
	}
	for _, variable := range unknown {
		hint("motorpool: %s", variable)
	}
	if err != nil {
		return badUsage("%w", errors.Join(reader.Problems(), err, helpFor(err)))
	}
	if err := reader.Problems(); err != nil {
		return badUsage("%w", err)
	}
	stdout.failed = nil
	err = pg.Explain(parsed.Run())
	// A full disk: a file of keys may be empty.
	if lost := stdout.failed; lost != nil && (err == nil || errors.Is(err, lost)) {
		err = failure{exitUnknown, fmt.Errorf("the command is done, but its output is lost: %w", lost)}
	}
	return err
}

// showVersion is the flag --version.
type showVersion bool

// BeforeReset prints the version and ends the program, before other flags are checked.
func (showVersion) BeforeReset(app *kong.Kong) error {
	if err := (printVersion{}).Run(); err != nil {
		return err
	}
	app.Exit(0)
	return nil
}

type printVersion struct{}

func (printVersion) Run() error {
	fmt.Fprintln(stdout, "motorpool", version)
	return nil
}
