package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"motorpool/cmd/internal/keyfile"
	"motorpool/telematics"
)

// secrets are what the world keeps to itself between runs.
type secrets struct {
	signing telematics.Keychain   // of commands, as it is at start
	tokens  telematics.SigningKey // of access tokens
	units   string                // from which the units' passwords are derived
	service string                // password of the service at the MQTT broker

	payments string // the service's key at the payment processor's stand-in
	webhooks string // that signs what the stand-in tells
	agencies string // that seals the secrets of agencies' keys
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
	var tokens telematics.Keychain
	var errs [7]error
	s.signing, errs[0] = openKeys(filepath.Join(dir, signingFile))
	tokens, errs[1] = openKeys(filepath.Join(dir, tokensFile))
	s.units, errs[2] = openSecret(filepath.Join(dir, "units.secret"))
	s.service, errs[3] = openSecret(filepath.Join(dir, "service.secret"))
	s.payments, errs[4] = openSecret(filepath.Join(dir, "payments.secret"))
	s.webhooks, errs[5] = openSecret(filepath.Join(dir, "webhooks.secret"))
	s.agencies, errs[6] = openSecret(filepath.Join(dir, "agencies.secret"))
	s.payments, s.webhooks, s.agencies = "sk_test_"+s.payments, "whsec_"+s.webhooks, hexOf(s.agencies)
	if err := errors.Join(errs[:]...); err != nil {
		return s, fmt.Errorf("open secrets: %w", err)
	}
	s.tokens = tokens.Active().SigningKey
	return s, errors.Join(
		publish(filepath.Join(dir, keyringFile), s.signing),
		publish(filepath.Join(dir, tokenKeysFile), tokens))
}

func openKeys(file string) (telematics.Keychain, error) {
	chain, err := keyfile.Read(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return chain, err
	}
	key, err := telematics.NewSigningKey()
	if err != nil {
		return nil, err
	}
	if chain, err = (telematics.Keychain{}).Add(key, time.Now()); err != nil {
		return nil, err
	}
	jwks, err := chain.Encode()
	if err != nil {
		return nil, err
	}
	return chain, writeWhole(file, jwks)
}

func publish(file string, chain telematics.Keychain) error {
	jwks, err := telematics.EncodeKeyring(chain.Keyring())
	if err != nil {
		return err
	}
	return writeWhole(file, jwks)
}

// hexOf returns a key of 32 bytes that follows from a secret.
func hexOf(secret string) string {
	key := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(key[:])
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
