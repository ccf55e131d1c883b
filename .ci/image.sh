#!/bin/sh
# .ci/image.sh FOLDER: fills FOLDER with the contents of the container image: the first Node on the PATH, the libraries it
# loads, the packages, and the sources of this checkout. The image has no shell and no package manager.
# The Dockerfile runs this script. `npm run image` runs it too, and prints the size of the image.
set -eu
cd "$(dirname "$0")/.."
image="$1"
install -d "$image/app/.ci"
cp .ci/setup.mjs "$image/app/.ci"
cp package.json package-lock.json .npmrc LICENSE manifest.json "$image/app"
cp -R src adapters "$image/app"
cd "$image/app"
node .ci/setup.mjs start
# The Node in the lockfile is for machines that have none.
rm -rf node_modules/node-linux-* node_modules/.bin node_modules/.slim package-lock.json .npmrc .ci
find node_modules -type d -empty -delete

node="$(node -p process.execPath)"
install -D -m 755 "$node" "$image/usr/local/bin/node"
# The image decoder has its own library, which loads some of the system's libraries too.
ldd "$node" node_modules/@img/sharp-libvips-linux*/lib/*.so* |
  sed -n 's|.*=> \(/[^ ]*\) (.*|\1|p; s|^[[:space:]]*\(/[^ ]*/ld-[^ ]*\) (.*|\1|p' | sort -u |
  while read -r library; do
    install -D -m 755 "$library" "$image$library"
  done
install -d "$image/etc"
echo 'node:x:1000:1000::/tmp:/sbin/nologin' > "$image/etc/passwd"
echo 'node:x:1000:' > "$image/etc/group"
# Looks names up in the hosts file first, and then in the network.
echo 'hosts: files dns' > "$image/etc/nsswitch.conf"
install -d -m 700 "$image/data"
install -d -m 1777 "$image/tmp"
