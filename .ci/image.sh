#!/bin/sh
# .ci/image.sh FOLDER: makes FOLDER what the container image holds, from the checkout around it and the Node that is first
# on the PATH: that Node, the libraries it loads, the packages and the sources. No shell, no package manager.
# The Dockerfile runs it; `npm run image` runs it and says how large the image is.
set -eu
cd "$(dirname "$0")/.."
image="$1"
install -d "$image/app/.ci"
cp .ci/setup.mjs "$image/app/.ci"
cp package.json package-lock.json .npmrc LICENSE manifest.json "$image/app"
cp -R src adapters "$image/app"
cd "$image/app"
node .ci/setup.mjs start
# The Node of the lockfile is for machines without one.
rm -rf node_modules/node-linux-* node_modules/.bin node_modules/.slim package-lock.json .npmrc .ci
find node_modules -type d -empty -delete

node="$(node -p process.execPath)"
install -D -m 755 "$node" "$image/usr/local/bin/node"
# The decoder of pictures brings a library of its own that loads some of the system's as well.
ldd "$node" node_modules/@img/sharp-libvips-linux*/lib/*.so* |
  sed -n 's|.*=> \(/[^ ]*\) (.*|\1|p; s|^[[:space:]]*\(/[^ ]*/ld-[^ ]*\) (.*|\1|p' | sort -u |
  while read -r library; do
    install -D -m 755 "$library" "$image$library"
  done
install -d "$image/etc"
echo 'node:x:1000:1000::/tmp:/sbin/nologin' > "$image/etc/passwd"
echo 'node:x:1000:' > "$image/etc/group"
# A host's own names come before those of the network, as everywhere else.
echo 'hosts: files dns' > "$image/etc/nsswitch.conf"
install -d -m 700 "$image/data"
install -d -m 1777 "$image/tmp"
