package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"motorpool/internal/keyfile"
	"motorpool/mosquitto"
	"motorpool/telematics"
)

type unit struct {
	Add    addUnit    `cmd:"" help:"Add units with new passwords, and print the passwords: once, since only their hashes are stored."`
	Rotate rotateUnit `cmd:"" help:"${unit_rotate}."`
	Remove removeUnit `cmd:"" help:"Remove the passwords of units, and end their connections; revoke a certificate at its issuer first."`
	List   listUnits  `cmd:"" help:"List the units that have passwords."`
}

// unitAccess has the flags of Mosquitto's password file for units.
type unitAccess struct {
	UnitsPasswd      string `default:"units.passwd" placeholder:"FILE" help:"Mosquitto's password file of the units' listener."`
	MosquittoPIDFile string `name:"mosquitto-pid-file" placeholder:"FILE" help:"${unit_mosquitto_pid_file}."`
}

// serials are units on the command line.
type serials struct {
	Units []string `arg:"" name:"unit" help:"Serials of the units."`
}

func (s serials) check() error {
	var problems []error
	for i, name := range s.Units {
		if _, err := telematics.ParseSerial(name); err != nil {
			problems = append(problems, err)
		}
		for _, before := range s.Units[:i] {
			if before == name {
				problems = append(problems, fmt.Errorf("unit %s is named twice", name))
			}
		}
	}
	if err := errors.Join(problems...); err != nil {
		return badUsage("%w", err)
	}
	return nil
}

// edit changes the password file, calls done, and makes Mosquitto read the file. If change fails,
// or Mosquitto's process is not found, nothing is changed. done is called once the file is changed,
// even if Mosquitto cannot be reloaded afterwards.
func (a unitAccess) edit(ctx context.Context, change func(*mosquitto.Passwords) error, done func() error) error {
	broker, err := a.broker()
	if err != nil {
		return err
	}
	if err := a.write(ctx, change); err != nil {
		return err
	}
	return errors.Join(done(), broker.reload())
}

// write changes the password file alone.
func (a unitAccess) write(ctx context.Context, change func(*mosquitto.Passwords) error) error {
	return a.explain(keyfile.EditContent(ctx, a.UnitsPasswd, func(file []byte) ([]byte, error) {
		passwords, err := a.parse(file)
		if err != nil {
			return nil, err
		}
		if err := change(&passwords); err != nil {
			return nil, failure{exitRefused, err}
		}
		return passwords.Encode(), nil
	}, func(written []byte) error {
		_, err := mosquitto.ParsePasswords(written)
		return err
	}))
}

func (a unitAccess) parse(file []byte) (mosquitto.Passwords, error) {
	passwords, err := mosquitto.ParsePasswords(file)
	if err != nil {
		return passwords, fmt.Errorf("%s: Mosquitto may end when it reads this file; correct it first\n%w", a.UnitsPasswd, err)
	}
	return passwords, nil
}

func (a unitAccess) explain(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf(
			"--units-passwd: %w (make an empty one that Mosquitto may read: install -m 600 -o mosquitto /dev/null %s)",
			err, a.UnitsPasswd,
		)
	}
	return err
}

// reloader is the running Mosquitto, or none where the operator reloads it.
type reloader struct {
	process *mosquitto.Process
}

func (a unitAccess) broker() (reloader, error) {
	if a.MosquittoPIDFile == "" {
		return reloader{}, nil
	}
	process, err := mosquitto.FindProcess(a.MosquittoPIDFile)
	if err != nil {
		return reloader{}, fmt.Errorf("--mosquitto-pid-file: %w\nnothing was changed", err)
	}
	return reloader{&process}, nil
}

func (r reloader) reload() error {
	if r.process == nil {
		hint("Mosquitto reads the change when you send it SIGHUP.")
		return nil
	}
	if err := r.process.Reload(); err != nil {
		return fmt.Errorf("%w\nthe files are changed, but Mosquitto has not read them: send it SIGHUP", err)
	}
	return nil
}

// credentials has the flag of commands that give new passwords to the operator.
type credentials struct {
	PasswordFile string `type:"path" env:"-" placeholder:"FILE" help:"${unit_password_file}."`
}

// passwordBytes makes 192 random bits, 32 characters: too many to guess, however fast the hash is.
const passwordBytes = 24

// draw sets a new password for each unit, and returns lines of unit and password.
func (credentials) draw(passwords *mosquitto.Passwords, units []string) ([]byte, error) {
	var lines bytes.Buffer
	for _, name := range units {
		random := make([]byte, passwordBytes)
		if _, err := rand.Read(random); err != nil {
			return nil, err
		}
		password := base64.RawURLEncoding.EncodeToString(random)
		if err := passwords.Set(name, password); err != nil {
			return nil, err
		}
		fmt.Fprintf(&lines, "%s %s\n", name, password)
	}
	return lines.Bytes(), nil
}

// set gives the units new passwords, unless check returns an error.
func (c credentials) set(ctx context.Context, a unitAccess, units []string, check func(*mosquitto.Passwords) error) error {
	var lines []byte
	var written, inForce bool
	err := a.edit(ctx, func(passwords *mosquitto.Passwords) error {
		if err := check(passwords); err != nil {
			return err
		}
		var err error
		if lines, err = c.draw(passwords, units); err != nil || c.PasswordFile == "" {
			return err
		}
		// Before they are in force: else a full disk would lose them.
		err = writeNew(c.PasswordFile, lines)
		written = err == nil
		return err
	}, func() error {
		inForce = true
		if c.PasswordFile != "" {
			return nil
		}
		_, err := unchanged{stdout}.Write(lines)
		return err
	})
	if written && !inForce { // else the file with unused passwords would make the next attempt fail
		err = errors.Join(err, os.Remove(c.PasswordFile))
	}
	return err
}

// writeNew creates a file with a secret. It fails if the file exists.
func writeNew(name string, content []byte) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

type addUnit struct {
	unitAccess
	credentials
	device
	serials
}

func (u addUnit) Run(ctx context.Context) error {
	if err := u.serials.check(); err != nil {
		return err
	}
	if err := u.device.check(u.Units); err != nil {
		return err
	}
	if err := u.set(ctx, u.unitAccess, u.Units, func(passwords *mosquitto.Passwords) error {
		return each(u.Units, func(name string) error {
			if passwords.Has(name) {
				return fmt.Errorf("unit %s has a password already; for a new one: motorpool unit rotate %s", name, name)
			}
			return nil
		})
	}); err != nil {
		return err
	}
	return u.print(stdout, u.Units)
}

// each calls check for each unit, and joins the errors.
func each(units []string, check func(string) error) error {
	var problems []error
	for _, name := range units {
		problems = append(problems, check(name))
	}
	return errors.Join(problems...)
}
