package main

import (
	"context"
	"fmt"
)

type units struct {
	Unknown unknownUnits `cmd:"" help:"List units that talk to us and belong to no vehicle, newest acquaintance first."`
}

type unknownUnits struct {
	remote
	Limit int `env:"-" default:"50" placeholder:"N" help:"How many to list at most, 1 to 200 (default ${default})."`
}

func (u unknownUnits) Run(ctx context.Context) error {
	return u.list(ctx, fmt.Sprintf("units/unknown?limit=%d", u.Limit), unitColumns)
}
