// Package stores moves the data files of a node to another one: packs them, unpacks and checks them, installs them.
package stores
