// Package keyfile keeps keys in files that change while programs use them. Edit changes the file of
// the fleet's private keys under a lock, so that two operators do not undo each other's work, and
// replaces it atomically: a reader, or a crash, finds the old file or the new one. EditContent does
// the same for other files, such as the MQTT broker's passwords. A running program follows a file
// with a Source, which polls it; the last keys that were read stay in use while the file is missing
// or broken. Authorities reads the certificates that a program trusts.
package keyfile
