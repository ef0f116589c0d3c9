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
	HTTP        string `name:"http" placeholder:"ADDR" help:"Address of the API (default ${http}, or a free port)."`
	Internal    string `placeholder:"ADDR" help:"Address of health, readiness, metrics and profiles (default ${internal}, or a free port)."`
	MQTT        string `name:"mqtt" placeholder:"ADDR" help:"The MQTT broker's listener for units (default ${mqtt}, or a free port)."`
	MQTTService string `name:"mqtt-service" placeholder:"ADDR" help:"Its listener for the service (default ${service}, or a free port)."`
	Dir         string `default:".dev" placeholder:"DIR" help:"Folder that keeps data and keys between runs."`

	Without []telematics.VehicleID `placeholder:"N,…" help:"Vehicles that are not simulated, so that you can connect a unit instead."`
	Latency string                 `enum:"fast,cellular" default:"fast" help:"${latency}."`

	VehicleRate int `default:"600" placeholder:"N" help:"Control commands a minute to one vehicle; 0: any (the service alone: 10)."`
	RefreshRate int `default:"60" placeholder:"N" help:"Refreshes a minute of one vehicle; 0: any (the service alone: 2)."`
	AdminRate   int `default:"60000" placeholder:"N" help:"Requests a minute of one administrator; 0: any (the service alone: 600)."`
	ClientRate  int `default:"12000" placeholder:"N" help:"Requests a minute of one client; 0: any (the service alone: 120)."`
	CardRate    int `default:"2000" placeholder:"N" help:"Cards an hour of one client; 0: any (the service alone: 20)."`
	Streams     int `name:"admin-streams" default:"0" placeholder:"N" help:"Event streams of an administrator; 0: any (the service: 10)."`

	GeocoderURL app.Secret `name:"geocoder-url" placeholder:"URL" help:"${geocoder_url}."`
	Contact     string     `name:"geocoder-contact" placeholder:"TEXT" help:"Contact for its operator: an address or URL."`
	MapStyle    string     `name:"map-style" placeholder:"URL" help:"MapLibre style of the console's map (default none)."`
	CORSOrigins string     `name:"cors-origins" placeholder:"ORIGINS" help:"Origins of web apps that may call the API (default none)."`
	DatabaseURL app.Secret `env:"DATABASE_URL" placeholder:"URL" help:"${database_url}."`
	LogLevel    string     `enum:"debug,info,warn,error" default:"info" help:"debug, info, warn or error."`
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
		kong.Vars{
			"http": defaultHTTP, "internal": defaultInternal, "mqtt": defaultMQTT, "service": defaultMQTTService,
			"latency":      "Radio of the healthy cars: fast, or cellular: most answers within 2 to 10 s, so some commands time out",
			"geocoder_url": "A Nominatim-compatible server for the addresses of cars away from stations (default none)",
			"database_url": "A Postgres server to use, instead of one in the folder; the demo fleet is imported there",
		},
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
