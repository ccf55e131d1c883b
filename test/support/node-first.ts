/**
 * Files that share a process share what packages leave in `globalThis`, whoever comes first. Node's own part of undici
 * comes first here, as in the service, where the stripping of types needs it: the package would take over the uploads
 * of discord.js otherwise, whose forms it does not know.
 */
void globalThis.FormData;
