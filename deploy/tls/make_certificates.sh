#!/bin/sh
# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
#
# Makes certificates for a daemon that other machines reach: a certificate authority
# of one's own, one certificate for the daemon and one for each user who is to be
# known by it. Running it again adds users and keeps what is there; a certificate
# that is about to expire is removed by hand and made anew.
#
#   make_certificates.sh FOLDER HOST[,HOST...] [USER...]
#
# HOST: names and addresses by which clients call the daemon. The daemon gets
# server.crt and server.key (and ca.crt, to know users by their certificates); a
# user gets ca.crt, and USER.crt with USER.key. ca.key stays where it is made.
set -eu
usage="usage: make_certificates.sh FOLDER HOST[,HOST...] [USER...]"
folder=${1:?$usage}
hosts=${2:?$usage}
shift 2
days=${HOLDFAST_CERTIFICATE_DAYS:-365}

for user in "$@"; do
  case $user in
    *[!A-Za-z0-9._-]* | ca | server | "")
      echo "make_certificates.sh: a user's name has letters, digits and ._- only, and" \
        "is neither ca nor server. Got '$user'." >&2
      exit 1
      ;;
  esac
done
umask 077
mkdir -p "$folder"
cd "$folder"

# The daemon runs as a user of its own (the package's /etc/holdfast is
# root:holdfast): what it reads is the folder's group's, and nobody else's.
for_the_daemon() {
  group=$(stat -c %g .)
  if [ "$(id -u)" != 0 ] || [ "$group" = 0 ]; then return 0; fi
  chgrp "$group" "$@"
  chmod 640 "$@"
}

# certificate NAME SUBJECT EXTENSIONS
certificate() {
  [ -e "$1.crt" ] && return
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
    -keyout "$1.key" -subj "$2" -out "$1.csr" 2>/dev/null
  printf '%s\n' "$3" > "$1.ext"
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial \
    -days "$days" -extfile "$1.ext" -out "$1.crt" 2>/dev/null
  rm -f "$1.csr" "$1.ext"
  echo "$folder/$1.crt: valid for $days days"
}

if [ ! -e ca.crt ]; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
    -keyout ca.key -subj "/CN=Holdfast CA of $(uname -n)" -days 3650 -out ca.crt \
    -addext basicConstraints=critical,CA:true,pathlen:0 \
    -addext keyUsage=critical,keyCertSign,cRLSign 2>/dev/null
  echo "$folder/ca.crt: valid for 3650 days"
fi
names=
old=$IFS
IFS=,
for host in $hosts; do
  # Addresses are entries of another kind than names.
  case $host in
    *[!0-9.]*) case $host in *:*) kind=IP ;; *) kind=DNS ;; esac ;;
    *) kind=IP ;;
  esac
  names=${names:+$names,}$kind:$host
done
first=${hosts%%,*}
IFS=$old
certificate server "/CN=$first" "subjectAltName=$names
extendedKeyUsage=serverAuth
basicConstraints=CA:false"
for_the_daemon ca.crt server.crt server.key
for user in "$@"; do
  certificate "$user" "/CN=$user" "extendedKeyUsage=clientAuth
basicConstraints=CA:false"
done
