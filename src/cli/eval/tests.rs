use super::*;

fn answers(input: &[u8]) -> (Vec<String>, LineCounts) {
    let mut output = Vec::new();
    let outcome = eval(Profile::Google, BufReader::new(input), &mut output).expect("memory does not fail");
    let output = String::from_utf8(output).expect("JSON is UTF-8");
    (output.lines().map(String::from).collect(), outcome)
}

#[test]
fn an_output_line_repeats_the_input_fields_before_the_decision() {
    let (answers, outcome) = answers(
        br#"{"id":1.50e3,"robots":"User-agent: *\nDisallow: /x # no","agent":"a","url":"/x","n":{"a":[]}}
{"line":7,"allowed":0,"robots_b64":"VXNlci1hZ2VudDogYQo=","agent":"A","url":"\/","rule":1,"group":2}"#,
    );
    assert_eq!(
        answers,
        [
            r#"{"id":1.50e3,"agent":"a","url":"/x","n":{"a":[]},"allowed":false,"line":2,"rule":"Disallow: /x","group":"*","usage":null,"usage_lines":[],"signals":{"search":null,"ai-input":null,"ai-train":null}}"#,
            r#"{"agent":"A","url":"\/","allowed":true,"line":0,"rule":null,"group":"a","usage":{"train-ai":null,"search":null},"usage_lines":[],"signals":{"search":null,"ai-input":null,"ai-train":null}}"#,
        ]
    );
    assert_eq!((outcome.decided, outcome.failed), (2, 0));
}

#[test]
fn a_bad_line_is_reported_and_the_others_are_decided() {
    let (answers, outcome) = answers(
        b"\n{\"id\":1}\n \r\n[]\n\xFF\n{\"id\":2,\"robots\":1,\"agent\":\"a\",\"url\":\"/\"}\n\
          {\"robots\":\"\",\"robots_b64\":\"\",\"agent\":\"a\",\"url\":\"/\"}\n\
          {\"agent\":\"a\",\"url\":\"/\",\"error\":0}\n\
          {\"robots_b64\":\"%%%%\",\"agent\":\"a\",\"url\":\"/\"}\n\
          {\"robots\":\"\",\"agent\":\"a\",\"url\":\"/\\ud800\"}\n\
          {\"robots\":\"\",\"agent\":\"a\",\n\
          {\"robots\":\"\",\"robots_b64\":null,\"agent\":\"a\",\"url\":\"/\"}",
    );
    insta::assert_snapshot!(answers.join("\n"), @r#"
    {"id":1,"error":"the field `agent` is missing or null","input_line":2}
    {"error":"the line is not a JSON object","input_line":4}
    {"error":"the line is not UTF-8; send a robots.txt that is not UTF-8 as base64 in `robots_b64`","input_line":5}
    {"id":2,"agent":"a","url":"/","error":"the field `robots` is not a string","input_line":6}
    {"agent":"a","url":"/","error":"the line has both `robots` and `robots_b64`; send one of them","input_line":7}
    {"agent":"a","url":"/","error":"the fields `robots` and `robots_b64` are missing or null; send one of them, empty if the site has no robots.txt","input_line":8}
    {"agent":"a","url":"/","error":"the field `robots_b64` is not standard base64 without line breaks: invalid symbol at 0","input_line":9}
    {"agent":"a","url":"/\ud800","error":"the field `url` has one half of a surrogate pair (U+D800 to U+DFFF) without the other","input_line":10}
    {"error":"the line ends before its JSON does; write each object on one line","input_line":11}
    {"agent":"a","url":"/","allowed":true,"line":0,"rule":null,"group":null,"usage":{"train-ai":null,"search":null},"usage_lines":[],"signals":{"search":null,"ai-input":null,"ai-train":null}}
    "#);
    assert_eq!((outcome.decided, outcome.failed), (1, 9));
}

#[test]
fn the_column_of_a_mistake_counts_characters() {
    let (answers, _) = answers("{\"agent\":\"ééé\" 1}".as_bytes());
    assert!(answers[0].contains("not valid JSON near column 16"), "{answers:?}");
}

#[test]
fn escaped_and_repeated_keys_are_read_as_in_json() {
    let (answers, _) =
        answers(br#"{"robots":"x","r\u006fbots":"User-agent: *\nDisallow: /\u30c4","agent":"a","url":"/%E3%83%84"}"#);
    assert!(answers[0].contains(r#""allowed":false,"line":2,"#), "{answers:?}");
}

#[test]
fn an_answer_is_flushed_before_more_input_is_read() {
    use std::{cell::RefCell, rc::Rc};

    #[derive(Clone, Default)]
    struct Screen(Rc<RefCell<Vec<u8>>>);

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// An input that sends a line only after the previous line got its answer.
    struct Typist(u8, Screen);

    impl Read for Typist {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let answered = self.1.0.borrow().iter().filter(|b| **b == b'\n').count();
            assert_eq!(answered, usize::from(self.0));
            if self.0 == 3 {
                return Ok(0);
            }
            self.0 += 1;
            let line = b"{\"robots\":\"\",\"agent\":\"\",\"url\":\"\"}\n";
            buffer[..line.len()].copy_from_slice(line);
            Ok(line.len())
        }
    }

    let screen = Screen::default();
    let typist = Typist(0, screen.clone());
    let outcome = eval(Profile::Google, BufReader::new(typist), BufWriter::new(screen));
    assert_eq!(outcome.expect("the screen is there").decided, 3);
}

#[test]
fn progress_is_shown_in_mebibytes() {
    assert_eq!(
        progress_text(3 << 19, Some(12 << 20)),
        "deciding, 1.5 of 12.0 MiB of input read"
    );
    assert_eq!(progress_text(0, None), "deciding, 0.0 MiB of input read so far");
}
