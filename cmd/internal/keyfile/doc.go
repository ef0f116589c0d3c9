// Package keyfile keeps keys in files that change while programs use them. Edit is how
// the operator changes the file of the fleet's private keys: under a lock, so that two
// operators do not undo each other, and so that a reader, or a crash, finds the old file
// or the new one. A Source is how a running program notices: it reads again and again, and
// what was read stays in force while the file is missing or broken. EditContent changes other
// files that programs read meanwhile in the same way, such as the MQTT broker's passwords.
// Authorities reads the certificates that a program trusts.
package keyfile
