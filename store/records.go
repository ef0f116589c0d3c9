package store

import (
	"context"
	"errors"

	"motorpool/store/twins"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// Commands is the record of commands of an instance that caches the records of vehicles. It is safe for concurrent use.
type Commands struct {
	*Postgres
	twins *twins.Twins
}

// NewCommands returns the record of commands in Postgres. Its orders were accepted by what the twins returned of their vehicles.
func NewCommands(p *Postgres, t *twins.Twins) *Commands { return &Commands{p, t} }

// Claim is Postgres.Claim for a command whose order may have been accepted by a cached record. Where that is out of date, Claim
// removes it from the cache, has the order accepted anew, and claims the command that accept returns. That was accepted a moment ago, so it is not
// checked again: a record that changes all the time delays no command.
func (c *Commands) Claim(ctx context.Context, command *telematics.Command, accept func() (*telematics.Command, error)) (delivery.Claim, error) {
	claim, err := c.Postgres.Claim(ctx, *command)
	switch {
	case err == nil:
		if claim.Taken() {
			c.twins.Confirm(command.Vehicle, command.Version)
		}
		return claim, nil
	case !errors.Is(err, errStale):
		c.twins.Forget(command.Vehicle) // it was not confirmed; and the next order fails before it claims
		return claim, err
	}
	c.twins.Forget(command.Vehicle)
	if command, err = accept(); err != nil {
		return delivery.Claim{}, err
	}
	accepted := *command
	accepted.Version = 0
	return c.Postgres.Claim(ctx, accepted)
}
