/**
 * Test files in one process share `globalThis`, and the first package that fills it wins. So this loads Node's built-in
 * undici first, as the service does for type stripping. Otherwise the undici package would handle discord.js's uploads,
 * and it does not know their forms.
 */
void globalThis.FormData;
