declare module "@highlightjs/cdn-assets/es/highlight.min.js" {
  interface Highlighter {
    getLanguage(name: string): { name?: string } | undefined;
    highlight(code: string, options: { language: string; ignoreIllegals: boolean }): { value: string };
  }
  const hljs: Highlighter;
  export default hljs;
}
