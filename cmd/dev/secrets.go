package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"motorpool/telematics"
)

// secrets are what the world keeps to itself between runs.
type secrets struct {
	signing telematics.SigningKey // of commands
	tokens  telematics.SigningKey // of access tokens
	units   string                // from which the units' passwords are derived
	service string                // password of the service at the MQTT broker
}

const (
	signingFile   = "signing.jwks"
	tokensFile    = "tokens.jwks"
	tokenKeysFile = "token-keys.jwks" // public half
	keyringFile   = "keyring.jwks"    // public half: what a unit of one's own must know
)

// openSecrets reads the secrets of a folder, and makes those that are missing.
func openSecrets(dir string) (secrets, error) {
	var s secrets
	var errs [4]error
	s.signing, errs[0] = openKey(filepath.Join(dir, signingFile))
	s.tokens, errs[1] = openKey(filepath.Join(dir, tokensFile))
	s.units, errs[2] = openSecret(filepath.Join(dir, "units.secret"))
	s.service, errs[3] = openSecret(filepath.Join(dir, "service.secret"))
	if err := errors.Join(errs[:]...); err != nil {
		return s, fmt.Errorf("open secrets: %w", err)
	}
	return s, errors.Join(
		publish(filepath.Join(dir, keyringFile), s.signing),
		publish(filepath.Join(dir, tokenKeysFile), s.tokens))
}

func openKey(file string) (telematics.SigningKey, error) {
	jwks, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		key, err := telematics.NewSigningKey()
		if err != nil {
			return key, err
		}
		jwks, err := telematics.EncodeSigningKeys(key)
		if err != nil {
			return key, err
		}
		return key, writeWhole(file, jwks)
	}
	if err != nil {
		return telematics.SigningKey{}, err
	}
	keys, err := telematics.ParseSigningKeys(jwks)
	if err != nil {
		return telematics.SigningKey{}, fmt.Errorf("%s: %w", file, err)
	}
	return keys[0], nil
}

func publish(file string, key telematics.SigningKey) error {
	jwks, err := telematics.EncodeKeyring(key.Keyring())
	if err != nil {
		return err
	}
	return writeWhole(file, jwks)
}

func openSecret(file string) (string, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 {
		text = []byte(rand.Text())
		err = writeWhole(file, text)
	}
	return string(text), err
}

// writeWhole writes a file so that a reader sees all of it, or none.
func writeWhole(file string, content []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = temporary.Write(content)
	err = errors.Join(err, temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
	}
	return nil
}
