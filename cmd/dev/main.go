// Command dev runs Motorpool with everything around it in one process: an MQTT broker, a Redis, a
// real Postgres, the service and a simulated fleet in which each car shows one outcome. It listens
// on this machine only.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"motorpool/internal/app"
	"motorpool/internal/logger"
	"motorpool/internal/settings"
	"motorpool/telematics"
)

type flags struct {
	HTTP        string                 `name:"http" placeholder:"ADDR" help:"Address of the API (default ${http}, or a free port where that is taken)."`
	Internal    string                 `placeholder:"ADDR" help:"Address of health, readiness, metrics and profiles (default ${internal}, or a free port)."`
	MQTT        string                 `name:"mqtt" placeholder:"ADDR" help:"Address of the MQTT broker's listener for units (default ${mqtt}, or a free port)."`
	MQTTService string                 `name:"mqtt-service" placeholder:"ADDR" help:"Address of its listener for the service (default ${service}, or a free port)."`
	Dir         string                 `default:".dev" placeholder:"DIR" help:"Folder that keeps data and keys between runs (default ${default})."`
	Without     []telematics.VehicleID `placeholder:"N,…" help:"Vehicles that are not simulated, so that you can connect a unit instead."`
	Latency     string                 `enum:"fast,cellular" default:"fast" help:"Radio of the healthy cars: fast, or cellular: most answers within 2 to 10 s, so some commands time out (default ${default})."`
	VehicleRate int                    `default:"600" placeholder:"N" help:"Control commands a minute to one vehicle; 0: any number (default ${default}; the service's own default is 10)."`
	RefreshRate int                    `default:"60" placeholder:"N" help:"Refreshes a minute of one vehicle; 0: any number (default ${default}; the service's own default is 2)."`
	AdminRate   int                    `default:"60000" placeholder:"N" help:"Requests a minute of one administrator; 0: any number (default ${default}; the service's own default is 600)."`
	ClientRate  int                    `default:"12000" placeholder:"N" help:"Requests a minute of one client; 0: any number (default ${default}; the service's own default is 120)."`
	CardRate    int                    `default:"2000" placeholder:"N" help:"Cards an hour that one client may try to add; 0: any number (default ${default}; the service's own default is 20)."`
	Streams     int                    `name:"admin-streams" default:"0" placeholder:"N" help:"Streams of events of one administrator; 0: any number (default ${default}; the service's own default is 10)."`
	GeocoderURL app.Secret             `name:"geocoder-url" placeholder:"URL" help:"A Nominatim-compatible server for the addresses of cars away from stations (default none)."`
	Contact     string                 `name:"geocoder-contact" placeholder:"TEXT" help:"Contact for its operator: an address or URL."`
	MapStyle    string                 `name:"map-style" placeholder:"URL" help:"MapLibre style of the console's map, see docs/console.md (default none)."`
	DatabaseURL app.Secret             `env:"DATABASE_URL" placeholder:"URL" help:"A Postgres server to use, instead of one in the folder; the demo fleet is imported there."`
	LogLevel    string                 `enum:"debug,info,warn,error" default:"info" help:"debug, info, warn or error (default ${default})."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dev:", strings.ReplaceAll(err.Error(), "\n", "\n     "))
		os.Exit(settings.ExitCode(err))
	}
}

func run(ctx context.Context, args []string) error {
	var f flags
	var reader settings.Reader
	parser, err := kong.New(&f, append(reader.Options("MOTORPOOL_DEV"),
		kong.Name("dev"),
		kong.Description("Motorpool with everything around it in one process, for development."),
		kong.Vars{"http": defaultHTTP, "internal": defaultInternal, "mqtt": defaultMQTT, "service": defaultMQTTService},
	)...)
	if err != nil {
		return err
	}
	if _, err := reader.Parse(parser, args); err != nil {
		return err
	}
	log := logger.New(os.Stderr, f.LogLevel, "text")
	slog.SetDefault(log)
	settings.LogUnknown(log, settings.UnknownVariables(parser.Model.Node, os.Environ(), "MOTORPOOL_DEV"))
	fleet, err := demoFleet(f.Without)
	if err != nil {
		return err
	}
	e := &environment{flags: f, fleet: fleet, log: log, out: os.Stdout}
	if err := e.run(ctx); ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	return nil // stopped during the start
}
